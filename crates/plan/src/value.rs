//! Values of a plan or lab file after reading: in the form of records, each with its place.

use super::diagnostic::Span;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use std::collections::HashMap;

/// A scalar as it is shown and compared: without quotes.
pub(crate) fn label(scalar: &Json) -> String {
    match scalar {
        Json::Bool(on) => if *on { "on" } else { "off" }.into(),
        Json::Number(n) => n
            .as_f64()
            .filter(|_| n.is_f64())
            .map_or_else(|| n.to_string(), |n| n.to_string()),
        Json::String(text) => text.trim().to_string(),
        other => other.to_string(),
    }
}

/// A value of a [`super::grammar::Kind`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A single value, CPU numbers and frame lengths too.
    Scalar(Json),
    /// A faulty value whose fault is already reported. It exists, so that it is not reported as missing too.
    Broken,
    List(Vec<Node>),
    Table(Tree),
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

impl Node {
    pub(crate) fn scalar(&self) -> Option<&Json> {
        match &self.value {
            Value::Scalar(json) => Some(json),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.scalar()?.as_str()
    }

    pub(crate) fn table(&self) -> Option<&Tree> {
        match &self.value {
            Value::Table(tree) => Some(tree),
            _ => None,
        }
    }

    /// The value without its places. Broken values and tables without entries are left out.
    fn json(&self) -> Option<Json> {
        match &self.value {
            Value::Scalar(json) => Some(json.clone()),
            Value::Broken => None,
            Value::List(nodes) => Some(nodes.iter().filter_map(Node::json).collect()),
            Value::Table(tree) => {
                Some(Json::Object(tree.json())).filter(|_| !tree.entries.is_empty())
            }
        }
    }
}

/// A key of a table with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// A table, in the order of the text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Tree {
    pub(crate) entries: Vec<Entry>,
}

/// Effect on a list of a second list laid over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// Both, without repetitions.
    Extend,
    /// The upper one.
    Replace,
}

impl Tree {
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|e| &e.node)
    }

    pub(crate) fn table(&self, key: &str) -> Option<&Tree> {
        self.get(key)?.table()
    }

    /// The entries of an inner table; none where the key is absent.
    pub(crate) fn within(&self, key: &str) -> &[Entry] {
        self.table(key)
            .map(|tree| tree.entries.as_slice())
            .unwrap_or_default()
    }

    /// The nodes of a list; none where the key is absent.
    pub(crate) fn list(&self, key: &str) -> &[Node] {
        match self.get(key).map(|node| &node.value) {
            Some(Value::List(nodes)) => nodes,
            _ => &[],
        }
    }

    /// The tables of a list.
    pub(crate) fn tables(&self, key: &str) -> impl Iterator<Item = &Tree> {
        self.list(key).iter().filter_map(Node::table)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    /// A value as a type of the program; `None` where it is absent or broken.
    pub(crate) fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_value(self.get(key)?.json()?).ok()
    }

    /// The words of a list that name values of a type.
    pub(crate) fn words<T: DeserializeOwned>(&self, key: &str) -> Vec<T> {
        self.list(key)
            .iter()
            .filter_map(|node| serde_json::from_value(node.json()?).ok())
            .collect()
    }

    /// The table without places.
    pub(crate) fn json(&self) -> Map<String, Json> {
        self.entries
            .iter()
            .filter_map(|e| Some((e.key.clone(), e.node.json()?)))
            .collect()
    }

    /// Lays another tree over this one. Values of the other tree win.
    pub(crate) fn overlay(&mut self, over: &Tree, lists: Lists) {
        let places: HashMap<String, usize> = self
            .entries
            .iter()
            .enumerate()
            .map(|(at, e)| (e.key.clone(), at))
            .collect();
        for entry in &over.entries {
            let Some(&at) = places.get(&entry.key) else {
                self.entries.push(entry.clone());
                continue;
            };
            let below = &mut self.entries[at];
            match (&mut below.node.value, &entry.node.value) {
                (Value::Table(under), Value::Table(over)) => under.overlay(over, lists),
                (Value::List(under), Value::List(over)) if lists == Lists::Extend => {
                    let known: Vec<Option<Json>> = under.iter().map(Node::json).collect();
                    under.extend(
                        over.iter()
                            .filter(|node| !known.contains(&node.json()))
                            .cloned(),
                    );
                }
                _ => *below = entry.clone(),
            }
        }
    }

    /// Sets a value at a path, making tables on the way.
    pub(crate) fn set(&mut self, path: &[String], node: &Node) {
        let [key, rest @ ..] = path else { return };
        let at = self
            .entries
            .iter()
            .position(|e| e.key == *key)
            .unwrap_or_else(|| {
                let empty = Node {
                    span: node.span,
                    value: Value::Table(Tree::default()),
                };
                self.entries.push(Entry {
                    key: key.clone(),
                    key_span: node.span,
                    node: empty,
                });
                self.entries.len() - 1
            });
        match &mut self.entries[at].node {
            Node {
                value: Value::Table(tree),
                ..
            } if !rest.is_empty() => tree.set(rest, node),
            below => *below = node.clone(),
        }
    }
}

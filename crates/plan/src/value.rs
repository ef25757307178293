//! Values of a plan after they were read: typed, in their units, and still knowing where they stand.

use super::diagnostic::Span;
use super::names::Named;
use super::settings::{Cpus, Dut};
use crate::units::Rate;
use linerate_wire::{FlowOrder, FrameMix};
use std::collections::HashMap;

/// A value as TOML has it, before it is known what it is for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Raw {
    Flag(bool),
    Integer(i128),
    Float(f64),
    Text(String),
}

impl Raw {
    /// As it is shown and compared: without quotes.
    pub(crate) fn label(&self) -> String {
        match self {
            Raw::Flag(true) => "on".into(),
            Raw::Flag(false) => "off".into(),
            Raw::Integer(n) => n.to_string(),
            Raw::Float(n) => n.to_string(),
            Raw::Text(text) => text.trim().to_string(),
        }
    }
}

/// A value of a [`super::grammar::Kind`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Flag(bool),
    Count(u64),
    Text(String),
    Duration(u64),
    Length(u64),
    Size(FrameMix),
    Rate(Rate),
    Speed(f64),
    Share(f64),
    Memory(u64),
    CpuList(Vec<u32>),
    CpuCount(Cpus),
    FlowOrder(FlowOrder),
    Dut(Dut),
    Version((u32, u32)),
    /// A scalar whose kind depends on another key.
    Raw(Raw),
    /// Something that is wrong, which has been told: it is there, and must not be missed as well.
    Broken,
    List(Vec<Node>),
    Table(Tree),
}

impl Value {
    /// Its number on the axis of a plot.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Flag(on) => Some(f64::from(u8::from(*on))),
            Value::Count(n) | Value::Duration(n) | Value::Length(n) | Value::Memory(n) => Some(*n as f64),
            Value::Share(share) => Some(*share),
            Value::Speed(speed) => Some(*speed),
            Value::Rate(Rate::Frames(n) | Rate::BitsLayer1(n) | Rate::BitsLayer2(n) | Rate::LineShare(n)) => {
                Some(*n)
            }
            Value::Size(mix) if mix.pattern.len() == 1 => Some(f64::from(mix.pattern[0])),
            Value::CpuCount(Cpus::Count(n)) => Some(f64::from(*n)),
            _ => None,
        }
    }
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
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

/// What becomes of a list when another is laid over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// Both, without repetitions.
    Extend,
    /// The upper one.
    Replace,
}

impl Tree {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|e| e.key == key).map(|e| &e.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    pub(crate) fn table(&self, key: &str) -> Option<&Tree> {
        match &self.get(key)?.value {
            Value::Table(tree) => Some(tree),
            _ => None,
        }
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
        self.list(key).iter().filter_map(|node| match &node.value {
            Value::Table(tree) => Some(tree),
            _ => None,
        })
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The word of an enum.
    pub(crate) fn choice<T: Named>(&self, key: &str) -> Option<T> {
        T::of_name(self.text(key)?)
    }

    /// The words of a list.
    pub(crate) fn choices<T: Named>(&self, key: &str) -> Vec<T> {
        self.texts(key).iter().filter_map(|word| T::of_name(word)).collect()
    }

    /// The texts of a list.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        let text = |node: &Node| match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.list(key).iter().filter_map(text).collect()
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)?.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// A count, length, duration or amount of memory.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match self.get(key)?.value {
            Value::Count(n) | Value::Length(n) | Value::Duration(n) | Value::Memory(n) => Some(n),
            _ => None,
        }
    }

    pub(crate) fn number_u32(&self, key: &str) -> Option<u32> {
        self.number(key).and_then(|n| u32::try_from(n).ok())
    }

    pub(crate) fn share(&self, key: &str) -> Option<f64> {
        match self.get(key)?.value {
            Value::Share(share) => Some(share),
            _ => None,
        }
    }

    pub(crate) fn cpu_list(&self, key: &str) -> Option<Vec<u32>> {
        match &self.get(key)?.value {
            Value::CpuList(cpus) => Some(cpus.clone()),
            _ => None,
        }
    }

    /// Lays another tree over this one: what that says, wins.
    pub(crate) fn overlay(&mut self, over: &Tree, lists: Lists) {
        let places: HashMap<String, usize> =
            self.entries.iter().enumerate().map(|(at, e)| (e.key.clone(), at)).collect();
        for entry in &over.entries {
            let Some(&at) = places.get(&entry.key) else {
                self.entries.push(entry.clone());
                continue;
            };
            let below = &mut self.entries[at];
            match (&mut below.node.value, &entry.node.value) {
                (Value::Table(under), Value::Table(over)) => under.overlay(over, lists),
                (Value::List(under), Value::List(over)) if lists == Lists::Extend => extend(under, over),
                _ => *below = entry.clone(),
            }
        }
    }

    /// Sets a value at a path, making tables on the way.
    pub(crate) fn set(&mut self, path: &[String], node: &Node) {
        let [key, rest @ ..] = path else { return };
        let at = self.entries.iter().position(|e| e.key == *key).unwrap_or_else(|| {
            let empty = Node { span: node.span, value: Value::Table(Tree::default()) };
            self.entries.push(Entry { key: key.clone(), key_span: node.span, node: empty });
            self.entries.len() - 1
        });
        match &mut self.entries[at].node {
            Node { value: Value::Table(tree), .. } if !rest.is_empty() => tree.set(rest, node),
            below => *below = node.clone(),
        }
    }
}

fn extend(under: &mut Vec<Node>, over: &[Node]) {
    for node in over {
        if !under.iter().any(|n| same(&n.value, &node.value)) {
            under.push(node.clone());
        }
    }
}

/// Whether two values are equal wherever they stand.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a.value, &b.value))
        }
        (Value::Table(a), Value::Table(b)) => {
            let found = |e: &Entry| b.get(&e.key).is_some_and(|node| same(&e.node.value, &node.value));
            a.entries.len() == b.entries.len() && a.entries.iter().all(found)
        }
        _ => a == b,
    }
}

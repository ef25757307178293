//! What the grammar of plans, and of lab files, is made of: tables of keys, each with the kind of value that it takes and what it means.
//!
//! Reader, JSON Schema and the paths that factors may set all come from the same tables ([`super::keys`]), so that they cannot differ.

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    /// What it means, for people and for editors.
    pub(crate) about: &'static str,
}

impl Key {
    pub(crate) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Key {
        Key { name, kind, required: false, about }
    }

    pub(crate) const fn required(name: &'static str, kind: Kind, about: &'static str) -> Key {
        Key { name, kind, required: true, about }
    }
}

/// A table of keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// What messages call it: `a variant`.
    pub(crate) what: &'static str,
    /// Its keys, in groups that several tables may share.
    pub(crate) keys: &'static [&'static [Key]],
}

impl Table {
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().flat_map(|group| group.iter())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        self.all().find(|key| key.name == name)
    }
}

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Text of any number of lines.
    Text,
    /// One line of text, not empty.
    Line,
    /// true or false.
    Flag,
    /// A whole number in these bounds.
    Count { least: u64, most: u64 },
    /// A duration, in these bounds of nanoseconds.
    Duration { least: u64, most: u64 },
    /// A length in bytes, in these bounds.
    Length { least: u64, most: u64 },
    /// A frame length with FCS, or a mix.
    Size,
    /// An offered load.
    Rate,
    /// A link's speed.
    Speed,
    /// A share in percent.
    Share,
    /// An amount of memory.
    Memory,
    /// CPU numbers.
    CpuList,
    /// How many CPUs, or all.
    CpuCount,
    /// The order of flows.
    FlowOrder,
    /// What stands between the tester's ends.
    Dut,
    /// A kernel's version.
    Version,
    /// An IP network or address, with its length.
    Network,
    /// An IP address.
    Address,
    /// An IP address of an interface, with the length of its network where that is known.
    HostAddress,
    /// An Ethernet address.
    Mac,
    /// A kernel setting's value: a number, true or false (1 or 0), or text.
    Setting,
    /// One of these words; each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// A factor's levels: scalars that the field which is set must be able to take.
    Levels,
    /// Cells: a variant's name, or a table of `variant` and levels by factor.
    Selector,
    /// Several of a kind, at least one.
    List(&'static Kind),
    /// One or several of a kind.
    OneOrMore(&'static Kind),
    /// A table.
    Table(&'static Table),
    /// Several tables, `[[...]]`.
    Tables(&'static Table),
    /// A table whose names are the author's; the text says what they name.
    Named(&'static Kind, &'static str),
}

impl Kind {
    /// What is wanted, with an example: follows "write".
    pub(crate) fn wants(&self) -> String {
        match self {
            Kind::Text => "a text in quotes".into(),
            Kind::Line => "a line of text in quotes".into(),
            Kind::Flag => "true or false".into(),
            Kind::Count { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Duration { .. } => "a duration such as \"250 ms\", \"10 s\" or \"2 min\"".into(),
            Kind::Length { .. } => "a length such as \"1500 B\"".into(),
            Kind::Size => "a frame length with FCS such as \"64 B\", or \"imix\"".into(),
            Kind::Rate => "a rate such as \"max\", \"500 kpps\", \"1 Gbit/s:l1\" or \"50 %\"".into(),
            Kind::Speed => "a speed such as \"10 Gbit/s\"".into(),
            Kind::Share => "a share such as \"2 %\"".into(),
            Kind::Memory => "an amount of memory such as \"4 GiB\"".into(),
            Kind::CpuList => "CPU numbers such as \"0,2-3\"".into(),
            Kind::CpuCount => "a number of CPUs, or \"all\"".into(),
            Kind::FlowOrder => "\"sequential\", \"random\" or \"zipf:1.1\"".into(),
            Kind::Dut => "\"forwarding\", \"bridge\" or another kind of DUT".into(),
            Kind::Version => "a version such as \"5.17\"".into(),
            Kind::Network => "a network such as \"203.0.113.0/24\"".into(),
            Kind::Address => "an address such as \"198.19.0.2\"".into(),
            Kind::HostAddress => "an address with its length such as \"198.18.0.1/24\"".into(),
            Kind::Mac => "an Ethernet address such as \"02:00:00:00:00:01\"".into(),
            Kind::Setting => "a number or a text".into(),
            Kind::Choice(words) => {
                let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                super::diagnostic::listed(&words, "or")
            }
            Kind::Levels => "a list of levels such as [1, 10, 100]".into(),
            Kind::Selector => "a variant's name, or { variant = \"...\", FACTOR = LEVEL }".into(),
            Kind::List(of) => format!("a list: [...], of {}", of.wants()),
            Kind::OneOrMore(of) => of.wants(),
            Kind::Table(table) => format!("a table: {}", table.what),
            Kind::Tables(table) => format!("[[tables]]: each {}", table.what),
            Kind::Named(_, names) => format!("a table of {names}"),
        }
    }

    /// The units of a quantity, for a number that has none.
    pub(crate) fn units(&self) -> &'static [&'static str] {
        match self {
            Kind::Duration { .. } => &["us", "ms", "s", "min"],
            Kind::Length { .. } | Kind::Size => &["B"],
            Kind::Rate => &["pps", "bit/s:l1", "bit/s:l2", "%"],
            Kind::Speed => &["Mbit/s", "Gbit/s"],
            Kind::Share => &["%"],
            Kind::Memory => &["MiB", "GiB"],
            _ => &[],
        }
    }
}

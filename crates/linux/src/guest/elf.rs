//! The little that is read of ELF files: which loader a program names, how far its loaded part goes, and a section of a module.

/// A number of so many bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

fn place(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(number(bytes, at, 8)?).ok()
}

fn is_elf64(bytes: &[u8]) -> bool {
    // 64 bits, the lowest byte first.
    bytes.starts_with(b"\x7fELF\x02\x01")
}

/// The program headers: kind, offset and length in the file.
fn segments(bytes: &[u8]) -> impl Iterator<Item = (u64, usize, usize)> + '_ {
    let table = is_elf64(bytes).then(|| {
        Some((
            place(bytes, 32)?,
            number(bytes, 54, 2)? as usize,
            number(bytes, 56, 2)? as usize,
        ))
    });
    let (at, size, count) = table.flatten().unwrap_or_default();
    (0..count).map_while(move |segment| {
        let at = at.checked_add(size.checked_mul(segment)?)?;
        Some((
            number(bytes, at, 4)?,
            place(bytes, at.checked_add(8)?)?,
            place(bytes, at.checked_add(32)?)?,
        ))
    })
}

const LOADED: u64 = 1;
const LOADER: u64 = 3;

/// The program that loads this one with its libraries; `None` for a static program.
pub fn loader(bytes: &[u8]) -> Option<&str> {
    let (_, at, length) = segments(bytes).find(|(kind, ..)| *kind == LOADER)?;
    let name = bytes.get(at..at.checked_add(length)?)?;
    std::str::from_utf8(name).ok()?.split('\0').next()
}

/// A program without what no run needs: symbols and debug information, which follow its loaded part.
pub fn stripped(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = segments(&bytes)
        .filter(|(kind, ..)| *kind == LOADED)
        .map(|(_, at, length)| at.saturating_add(length))
        .max();
    if let Some(end) = end.filter(|end| (64..bytes.len()).contains(end)) {
        bytes.truncate(end);
        // Where the table of sections was, how many it had, and which has their names.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
    }
    bytes
}

/// The content of a section.
pub fn section<'b>(bytes: &'b [u8], name: &str) -> Option<&'b [u8]> {
    if !is_elf64(bytes) {
        return None;
    }
    let (table, size) = (place(bytes, 40)?, number(bytes, 58, 2)? as usize);
    let (count, names) = (
        number(bytes, 60, 2)? as usize,
        number(bytes, 62, 2)? as usize,
    );
    let header = |section: usize| table.checked_add(size.checked_mul(section)?);
    let content = |section: usize| {
        let at = header(section)?;
        let begin = place(bytes, at.checked_add(24)?)?;
        bytes.get(begin..begin.checked_add(place(bytes, at.checked_add(32)?)?)?)
    };
    let names = content(names)?;
    let is_it = |section: &usize| {
        let at = header(*section).and_then(|at| number(bytes, at, 4));
        let text = at.and_then(|at| names.get(at as usize..));
        text.and_then(|text| text.split(|byte| *byte == 0).next()) == Some(name.as_bytes())
    };
    content((0..count).find(is_it)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_read_and_stripped() {
        let this = std::fs::read("/proc/self/exe").unwrap();
        assert!(section(&this, ".text").is_some_and(|text| !text.is_empty()));
        assert_eq!(section(&this, ".no-such"), None);
        let before = this.len();
        let loader_of_whole = loader(&this).map(String::from);
        let short = stripped(this);
        assert!(short.len() < before);
        assert_eq!(loader(&short).map(String::from), loader_of_whole);
        assert_eq!(section(&short, ".text"), None);
    }

    #[test]
    fn no_other_file_is_taken_for_one() {
        for bytes in [&b""[..], b"\x7fELF", b"\x7fELF\x02\x01", &[0xff; 200]] {
            assert_eq!((loader(bytes), section(bytes, ".text")), (None, None));
            assert_eq!(stripped(bytes.to_vec()), bytes);
        }
        let mut wild = b"\x7fELF\x02\x01".to_vec();
        wild.resize(300, 0xff);
        assert_eq!((loader(&wild), section(&wild, "")), (None, None));
    }
}

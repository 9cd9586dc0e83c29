//! A disk as a power cut leaves it: put together from the trace of what was written to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::rounds::Chance;

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsynced {
    /// Writes are lost; names of files are there at once.
    Lost,
    /// Writes are lost, and what their directory was not synced for: new names, removals.
    LostWithNames,
    /// Each write reached the disk or did not.
    Torn,
}

/// One change of the trace, as `shim.c` writes it.
#[derive(Debug)]
struct Change<'a> {
    op: u8,
    path: &'a str,
    offset: usize,
    data: &'a [u8],
}

const HEAD: usize = 15;

/// The changes; a last one that is not whole is left out.
fn changes(trace: &[u8]) -> Vec<Change<'_>> {
    let mut changes = Vec::new();
    let mut rest = trace;
    while rest.len() >= HEAD {
        let path_length = usize::from(u16::from_ne_bytes([rest[1], rest[2]]));
        let length = u32::from_ne_bytes(rest[3..7].try_into().expect("4 bytes"));
        let offset = u64::from_ne_bytes(rest[7..15].try_into().expect("8 bytes"));
        let end = HEAD + path_length + usize::try_from(length).expect("it was in memory");
        if rest.len() < end {
            break;
        }
        changes.push(Change {
            op: rest[0],
            path: std::str::from_utf8(&rest[HEAD..HEAD + path_length]).expect("UTF-8"),
            offset: usize::try_from(offset).expect("it fits"),
            data: &rest[HEAD + path_length..end],
        });
        rest = &rest[end..];
    }
    changes
}

/// A file's content: what is safe, and what was done since.
#[derive(Debug, Default)]
struct Node<'a> {
    synced: Vec<u8>,
    since: Vec<(usize, Option<&'a [u8]>)>,
}

impl Node<'_> {
    fn sync(&mut self) {
        for (offset, data) in std::mem::take(&mut self.since) {
            apply(&mut self.synced, offset, data);
        }
    }
}

/// Writes; without data, sets the length.
fn apply(content: &mut Vec<u8>, offset: usize, data: Option<&[u8]>) {
    match data {
        None => content.resize(offset, 0),
        Some(data) => {
            let end = offset + data.len();
            content.resize(content.len().max(end), 0);
            content[offset..end].copy_from_slice(data);
        }
    }
}

/// Puts the directory together that this trace leaves where the power goes at its end.
pub(crate) fn rebuild(trace: &[u8], unsynced: Unsynced, chance: &mut Chance, into: &Path) {
    let mut nodes: Vec<Node<'_>> = Vec::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut synced_names = BTreeMap::new();
    for change in changes(trace) {
        let parent_of = |path: &str| {
            path.rsplit_once('/')
                .map_or(String::new(), |(up, _)| up.into())
        };
        match change.op {
            b'W' | b'T' => {
                let node = *names.entry(change.path.to_owned()).or_insert_with(|| {
                    nodes.push(Node::default());
                    nodes.len() - 1
                });
                let data = (change.op == b'W').then_some(change.data);
                nodes[node].since.push((change.offset, data));
            }
            b'S' => match names.get(change.path) {
                Some(node) => nodes[*node].sync(),
                // A directory.
                None => {
                    synced_names.retain(|path: &String, _| parent_of(path) != change.path);
                    let there = names
                        .iter()
                        .filter(|(path, _)| parent_of(path) == change.path);
                    synced_names.extend(there.map(|(path, node)| (path.clone(), *node)));
                }
            },
            b'U' => {
                names.remove(change.path);
            }
            b'R' => {
                let to = std::str::from_utf8(change.data).expect("UTF-8");
                if let Some(node) = names.remove(change.path) {
                    names.insert(to.to_owned(), node);
                }
            }
            other => panic!("no such change: {other}"),
        }
    }
    if unsynced == Unsynced::LostWithNames {
        names = synced_names;
    }
    fs::create_dir_all(into).expect("a directory");
    for (path, node) in names {
        let node = &nodes[node];
        let mut content = node.synced.clone();
        if unsynced == Unsynced::Torn {
            for (offset, data) in &node.since {
                if chance.between(0, 2) == 0 {
                    apply(&mut content, *offset, *data);
                }
            }
        }
        let path = into.join(path);
        fs::create_dir_all(path.parent().expect("it is below")).expect("a directory");
        fs::write(path, content).expect("written");
    }
}

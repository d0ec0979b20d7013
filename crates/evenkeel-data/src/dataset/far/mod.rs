//! Data sets in object stores (`s3://`, `gs://`, `az://`): the layouts of [`super::KINDS`], read through a bounded cache on this machine.
//!
//! What lies below the URL is laid out here as a tree of empty files, on which a kind lists as it would anywhere; the tables it reads (annotations,
//! lists of classes) are fetched before, and pictures and label maps when their sample is asked for. So the rules and checks are the same. Invariant:
//! a sample is read from files of the lengths that the store says, or not at all.

mod room;
#[cfg(test)]
mod tests;
mod tree;

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Kind, Listing, Offender, Preparation, Request, Sample, Source};
use crate::objects::{self, Objects};
use crate::{Error, Result};
use room::Room;
use tree::Tree;

/// Lists a data set at a URL.
pub(super) fn list(kind: &Kind, path: &Path, request: &Request) -> Result<Listing> {
    let url = path.to_string_lossy().trim_end_matches('/').to_string();
    let root = root_of(kind, &url);
    let local = objects::cache()?.join("data").join(&blake3::hash(root.as_bytes()).to_hex()[..32]);
    list_in(kind, &url, request, (objects::open(root)?, local, Room::of_environment()?))
}

/// The part of a URL under which everything of the data set lies: the folder of a table.
fn root_of<'a>(kind: &Kind, url: &'a str) -> &'a str {
    let table = (kind.name == "manifest").then(|| url.rsplit_once('/')).flatten();
    table.map_or(url, |(folder, _)| folder)
}

/// Lists a data set whose objects are at a place, through a folder of this machine.
fn list_in(
    kind: &Kind,
    url: &str,
    request: &Request,
    (place, local, room): (Arc<dyn Objects>, PathBuf, Room),
) -> Result<Listing> {
    let Some(is_table) = kind.far else {
        let words = "is read from a folder of this machine only; copy it there";
        return Err(Error::Request(format!("{url}: a data set of kind {} {words}", kind.name)));
    };
    let root = root_of(kind, url);
    let inner = url[root.len()..].trim_start_matches('/');
    let tree = Tree::lay(place, root, local, room)?;
    // held until the listing is done
    let tables = tree.names().filter(|name| *name == inner || is_table(name, request));
    let held: std::result::Result<Vec<File>, Offender> = tables.map(|name| tree.hold(name)).collect();
    let held = held.map_err(|offender| Error::Offenders(vec![offender]))?;
    let listing = (kind.list)(&tree.path(inner), request).map_err(|error| tree.abroad(error))?;
    drop(held);
    let offenders = listing.offenders.into_iter().map(|offender| tree.named(offender)).collect();
    Ok(Listing { source: Box::new(Far { inner: listing.source, tree }), offenders, ..listing })
}

/// Samples whose files are brought here when they are asked for.
struct Far {
    inner: Box<dyn Source>,
    tree: Tree,
}

thread_local! {
    /// The files of the sample that this thread asked for last: they stay until it asks for the next one, since a task may read a truth later.
    static HELD: RefCell<Vec<File>> = const { RefCell::new(Vec::new()) };
}

/// How often a sample is fetched anew when another process takes its files away in between.
const TRIES: usize = 3;

impl Far {
    fn with_files<T>(
        &self,
        index: usize,
        read: impl Fn() -> std::result::Result<T, Offender>,
    ) -> std::result::Result<T, Offender> {
        let files = self.inner.files(index);
        HELD.with_borrow_mut(Vec::clear);
        for _ in 1..TRIES {
            let held = self.tree.hold_all(&files)?;
            HELD.with_borrow_mut(|all| *all = held);
            match read() {
                Err(_) if !self.tree.all_here(&files) => {}
                answer => return answer.map_err(|offender| self.tree.named(offender)),
            }
        }
        let held = self.tree.hold_all(&files)?;
        HELD.with_borrow_mut(|all| *all = held);
        read().map_err(|offender| self.tree.named(offender))
    }
}

impl Source for Far {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn id(&self, index: usize) -> String {
        self.inner.id(index)
    }

    fn files(&self, index: usize) -> Vec<PathBuf> {
        self.inner.files(index)
    }

    fn load(&self, index: usize) -> std::result::Result<Sample, Offender> {
        self.with_files(index, || self.inner.load(index))
    }

    fn load_prepared(&self, index: usize, preparation: Preparation) -> std::result::Result<Sample, Offender> {
        self.with_files(index, || self.inner.load_prepared(index, preparation))
    }
}

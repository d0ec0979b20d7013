//! Tensor values kept in files beside the model, and nowhere else: a location that leads out of the model's folder is refused.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use super::message::{AttributeMessage, GraphMessage, Model, NodeMessage, Pair, TensorMessage};

/// The folder of a model.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// The folder of this file.
    pub(super) fn of(model: &Path) -> std::io::Result<Folder> {
        let folder = match model.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        folder.canonicalize().map(Folder)
    }

    /// The `bytes` bytes at the place that `pairs` describe.
    pub(super) fn read(&self, pairs: &[Pair], bytes: usize) -> Result<Vec<u8>, String> {
        let find = |key: &str| pairs.iter().find(|pair| pair.key == key).map(|pair| &*pair.value);
        let number = |key: &str| match find(key) {
            None => Ok(None),
            Some(text) => text.trim().parse::<u64>().map(Some).map_err(|_| format!("has the {key} {text:?}")),
        };
        let location = find("location").ok_or("is external but has no location")?;
        let offset = number("offset")?.unwrap_or(0);
        if number("length")?.is_some_and(|length| length != bytes as u64) {
            return Err(format!("has external data of another length than its {bytes} bytes"));
        }
        let path = self.inside(location)?;
        let failed =
            |error: std::io::Error| format!("has external data {location:?} that cannot be read: {error}");
        let mut file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        if offset.checked_add(bytes as u64).is_none_or(|end| end > size) {
            return Err(format!(
                "needs bytes {offset} to {offset}+{bytes} of {location:?}, which has {size}"
            ));
        }
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let mut values = vec![0; bytes];
        file.read_exact(&mut values).map_err(failed)?;
        Ok(values)
    }

    pub(super) fn inside(&self, location: &str) -> Result<PathBuf, String> {
        let escapes = || format!("has external data {location:?}, outside the model's folder");
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if location.is_empty() || !Path::new(location).components().all(plain) {
            return Err(escapes());
        }
        let path = self.0.join(location).canonicalize();
        let path =
            path.map_err(|error| format!("has external data {location:?} that cannot be read: {error}"))?;
        if !path.starts_with(&self.0) {
            return Err(escapes());
        }
        if !path.is_file() {
            return Err(format!("has external data {location:?}, which is not a file"));
        }
        Ok(path)
    }
}

/// Where the external data of a model lies, in order, each place once.
pub(super) fn locations(model: &Model) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    if let Some(graph) = &model.graph {
        of_graph(graph, &mut found);
    }
    for function in &model.functions {
        of_attributes(&function.attribute_proto, &mut found);
        of_nodes(&function.node, &mut found);
    }
    found
}

fn of_graph<'m>(graph: &'m GraphMessage, found: &mut BTreeSet<&'m str>) {
    graph.initializer.iter().for_each(|tensor| of_tensor(tensor, found));
    let sparse =
        graph.sparse_initializer.iter().flat_map(|sparse| sparse.values.iter().chain(&sparse.indices));
    sparse.for_each(|tensor| of_tensor(tensor, found));
    of_nodes(&graph.node, found);
}

fn of_nodes<'m>(nodes: &'m [NodeMessage], found: &mut BTreeSet<&'m str>) {
    nodes.iter().for_each(|node| of_attributes(&node.attribute, found));
}

fn of_attributes<'m>(attributes: &'m [AttributeMessage], found: &mut BTreeSet<&'m str>) {
    for attribute in attributes {
        let sparse =
            attribute.sparse_tensor.iter().flat_map(|sparse| sparse.values.iter().chain(&sparse.indices));
        attribute.t.iter().chain(sparse).for_each(|tensor| of_tensor(tensor, found));
        if let Some(graph) = &attribute.g {
            of_graph(graph, found);
        }
    }
}

fn of_tensor<'m>(tensor: &'m TensorMessage, found: &mut BTreeSet<&'m str>) {
    if tensor.data_location == 1 {
        let location = tensor.external_data.iter().find(|pair| pair.key == "location");
        found.extend(location.map(|pair| &*pair.value));
    }
}

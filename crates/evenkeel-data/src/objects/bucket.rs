//! A prefix in an object store (S3, GCS, Azure) as a place for objects.
//!
//! An object is created on the condition that there is none of its name, which the store decides (`If-None-Match`). A request that fails is tried
//! again: one whose answer was lost then finds its own object there, which is as good. That there is one is taken on trust from nobody: it is
//! asked for before a create is given up. Credentials come from the environment only (`AWS_*`, `GOOGLE_*`, `AZURE_*`).

use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    RetryConfig,
};
use tokio::runtime::Runtime;

use super::{Listed, Objects};
use crate::{Error, Result};

/// How often a request is tried in all, beyond what the client does itself.
const TRIES: u32 = 6;

/// A prefix in a bucket.
pub(super) struct Bucket {
    url: String,
    store: Box<dyn ObjectStore>,
    prefix: Path,
    runtime: Runtime,
}

impl Bucket {
    /// From `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
    pub(super) fn open(url: &str) -> Result<Self> {
        let wrong = |words: &str| Error::Request(format!("{url}: {words}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("is no URL"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        if bucket.is_empty() {
            return Err(wrong("name a bucket and a prefix in it, s3://bucket/my-study say"));
        }
        if bucket.contains(['@', ':']) {
            return Err(wrong("credentials and hosts come from the environment, never from a URL"));
        }
        let prefix = Path::parse(prefix).map_err(|e| wrong(&e.to_string()))?;
        let store = store(scheme, url).ok_or_else(|| wrong("is none of s3://, gs:// and az://"))?;
        let store = store.map_err(|e| wrong(&e.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| wrong(&format!("no connection could be set up: {e}")))?;
        Ok(Self { url: url.to_string(), store, prefix, runtime })
    }

    fn path(&self, name: &str) -> Result<Path> {
        let below = if self.prefix.as_ref().is_empty() { "" } else { "/" };
        let path = Path::parse(format!("{}{below}{name}", self.prefix));
        path.map_err(|e| Error::Place { path: self.url.clone().into(), reason: e.to_string() })
    }

    fn fail(&self, error: &StoreError) -> Error {
        let remedy = match error {
            StoreError::Unauthenticated { .. } | StoreError::PermissionDenied { .. } => {
                "; credentials come from the environment (AWS_*, GOOGLE_*, AZURE_*)"
            }
            _ => "",
        };
        Error::Place { path: self.url.clone().into(), reason: format!("{error}{remedy}") }
    }

    /// An object as lists name it, below the prefix.
    fn listed(&self, object: &ObjectMeta) -> Option<Listed> {
        let name = object.location.as_ref().strip_prefix(self.prefix.as_ref())?.trim_start_matches('/');
        let version = object.e_tag.clone().unwrap_or_else(|| object.last_modified.to_rfc3339());
        Some(Listed { name: name.to_string(), bytes: object.size, version })
    }

    /// Asks until there is an answer, with longer and longer pauses.
    fn ask<T>(
        &self,
        request: impl AsyncFn() -> std::result::Result<T, StoreError>,
    ) -> std::result::Result<T, StoreError> {
        let mut pause = Duration::from_millis(200);
        for _ in 1..TRIES {
            match self.runtime.block_on(request()) {
                Err(e) if passes(&e) => std::thread::sleep(pause),
                answer => return answer,
            }
            pause = (2 * pause).min(Duration::from_secs(10));
        }
        self.runtime.block_on(request())
    }
}

/// Whether another try may help.
fn passes(error: &StoreError) -> bool {
    matches!(error, StoreError::Generic { .. } | StoreError::JoinError { .. })
}

fn store(scheme: &str, url: &str) -> Option<object_store::Result<Box<dyn ObjectStore>>> {
    let retry =
        RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(60), ..RetryConfig::default() };
    let boxed = |store: Box<dyn ObjectStore>| store;
    match scheme {
        "s3" => {
            let builder = AmazonS3Builder::from_env().with_url(url).with_retry(retry);
            Some(builder.build().map(|store| boxed(Box::new(store))))
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retry);
            Some(builder.build().map(|store| boxed(Box::new(store))))
        }
        "az" => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retry);
            Some(builder.build().map(|store| boxed(Box::new(store))))
        }
        _ => None,
    }
}

impl Objects for Bucket {
    fn list(&self) -> Result<Vec<Listed>> {
        let listed = self.ask(async || self.store.list_with_delimiter(Some(&self.prefix)).await);
        let listed = listed.map_err(|e| self.fail(&e))?;
        let mut all: Vec<Listed> = listed.objects.iter().filter_map(|object| self.listed(object)).collect();
        all.sort();
        Ok(all)
    }

    fn list_below(&self) -> Result<Vec<Listed>> {
        let listed = self.ask(async || self.store.list(Some(&self.prefix)).try_collect::<Vec<_>>().await);
        let listed = listed.map_err(|e| self.fail(&e))?;
        let mut all: Vec<Listed> = listed.iter().filter_map(|object| self.listed(object)).collect();
        all.sort();
        Ok(all)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path(name)?;
        match self.ask(async || self.store.get(&path).await?.bytes().await) {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(e) => Err(self.fail(&e)),
        }
    }

    fn create(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let (path, payload) = (self.path(name)?, PutPayload::from(bytes));
        let options = || PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        for _ in 0..TRIES {
            match self.ask(async || self.store.put_opts(&path, payload.clone(), options()).await) {
                Ok(_) => return Ok(true),
                Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {}
                Err(e) => return Err(self.fail(&e)),
            }
            // a store that saw two at once may refuse one for the other's sake, and the other may fail after that
            match self.ask(async || self.store.head(&path).await) {
                Ok(_) => return Ok(false),
                Err(StoreError::NotFound { .. }) => {}
                Err(e) => return Err(self.fail(&e)),
            }
        }
        let reason = format!("{name} is said to be there and is not; run the same command again");
        Err(Error::Place { path: self.url.clone().into(), reason })
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let (path, payload) = (self.path(name)?, PutPayload::from(bytes));
        self.ask(async || self.store.put(&path, payload.clone()).await).map_err(|e| self.fail(&e))?;
        Ok(())
    }
}

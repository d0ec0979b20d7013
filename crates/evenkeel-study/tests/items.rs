//! Work items through a place that fails: killed, doubled, refused and answered late, they come to the bytes of one process.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use evenkeel::Random;
use evenkeel_data::objects::Listed;
use evenkeel_study::experiment::Experiment;
use evenkeel_study::rows;
use evenkeel_study::run::{CPUS_PER_TASK, Done, Effort, ITEM_MINUTES, Item, RETRIES, Study, Watch};
use evenkeel_study::store::{Folder, Objects, Shard, Site, Store};

struct Quiet;

impl Watch for Quiet {
    fn done(&self, _: usize, _: Option<f64>) {}
}

/// A folder that fails one time in three: before it did what it was asked, or after.
struct Flaky {
    folder: Folder,
    random: Mutex<Random>,
    failures: AtomicUsize,
    /// How often each object was made.
    created: Mutex<Vec<String>>,
}

impl Flaky {
    fn new(folder: &Path) -> Self {
        Self {
            folder: Folder(folder.to_owned()),
            random: Mutex::new(Random::new(5)),
            failures: AtomicUsize::new(0),
            created: Mutex::default(),
        }
    }

    fn ask<T>(&self, what: impl FnOnce() -> evenkeel_data::Result<T>) -> evenkeel_data::Result<T> {
        let chance = self.random.lock().unwrap().unit();
        let fail = || {
            self.failures.fetch_add(1, Ordering::SeqCst);
            evenkeel_data::Error::Request("500: injected".into())
        };
        if chance < 1.0 / 6.0 {
            return Err(fail());
        }
        let done = what();
        if chance < 1.0 / 3.0 { Err(fail()) } else { done }
    }
}

impl Objects for Flaky {
    fn list(&self) -> evenkeel_data::Result<Vec<Listed>> {
        self.ask(|| self.folder.list())
    }
    fn list_below(&self) -> evenkeel_data::Result<Vec<Listed>> {
        self.ask(|| self.folder.list_below())
    }
    fn read(&self, name: &str) -> evenkeel_data::Result<Option<Vec<u8>>> {
        self.ask(|| self.folder.read(name))
    }
    fn create(&self, name: &str, bytes: Vec<u8>) -> evenkeel_data::Result<bool> {
        self.ask(|| {
            let made = self.folder.create(name, bytes)?;
            if made {
                self.created.lock().unwrap().push(name.to_string());
            }
            Ok(made)
        })
    }
    fn put(&self, name: &str, bytes: Vec<u8>) -> evenkeel_data::Result<()> {
        self.ask(|| self.folder.put(name, bytes))
    }
}

fn study() -> Study {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models/scenes_classifier.onnx");
    let text = format!(
        "name = \"items\"\n[[subject]]\nname = \"crops\"\nmodel = {network:?}\ndata = \"scenes-objects\"\npath = \"7@32x32\"\n\
         [[attack]]\nkind = \"pgd\"\nsteps = 2\n[[defence]]\nkind = \"equivariance\"\nsteps = 1\n[[detector]]\nkind = \"variance\"\nviews = \"only-flip\"\n"
    );
    Study::load(Experiment::parse(&text, Path::new("items.toml")).unwrap(), &[]).unwrap()
}

const ENDING: &str = evenkeel_study::record::ENDING;

fn tables(study: &Study, store: &Store, folder: &Path) -> Vec<Vec<u8>> {
    assert!(rows::missing(&study.design, store).is_empty());
    std::fs::create_dir_all(folder).unwrap();
    rows::export(&study.design, store, folder).unwrap();
    ["records", "detections"]
        .map(|name| std::fs::read(folder.join(format!("{name}.{ENDING}"))).unwrap())
        .to_vec()
}

fn effort(stop: &AtomicBool) -> Effort<'_> {
    Effort { threads: 1, shard: Shard::WHOLE, save_images: false, stop }
}

/// Takes items until all were made or found there; each is begun anew until the place answers.
fn worker(study: &Study, items: &[Item], place: &Flaky, (first, step): (usize, usize)) -> usize {
    let stop = AtomicBool::new(false);
    let mut made = 0;
    for item in (0..items.len()).map(|at| &items[(first + step * at) % items.len()]) {
        made += loop {
            match study.run_item(item, place, &effort(&stop), &Quiet) {
                Ok(Done::Made(_)) => break 1,
                Ok(Done::There) => break 0,
                Ok(Done::Stopped) => panic!("nobody stopped it"),
                Err(error) => assert!(error.to_string().contains("injected"), "{error}"),
            }
        };
    }
    made
}

#[test]
fn items_on_a_place_that_fails_come_to_the_bytes_of_one_process() {
    let study = study();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let stop = AtomicBool::new(false);
    let (whole, _) =
        study.run(Store::open(&at("whole"), Shard::WHOLE).unwrap(), &effort(&stop), &Quiet).unwrap();
    let expected = tables(&study, &whole, &at("whole"));
    let forecast = study.forecast(&Quiet).unwrap();
    let items = study.items(&forecast, None, 0.0).unwrap();
    assert_eq!(items.len(), study.design.works.len() * 7, "no seconds at all: an item for each job");
    let place = Flaky::new(&at("place"));
    // each item is done by two workers, who come from both ends
    let made: usize = std::thread::scope(|scope| {
        let ways = [(0, 1), (items.len() - 1, items.len() - 1)];
        let (study, items, place) = (&study, &items, &place);
        let all = ways.map(|way| scope.spawn(move || worker(study, items, place, way)));
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(place.failures.load(Ordering::SeqCst) > items.len() / 4);
    let mut created = place.created.into_inner().unwrap();
    created.sort();
    let mut names: Vec<String> = items.iter().map(Item::object).collect();
    names.sort();
    assert_eq!(created, names, "every item is kept once");
    // an answer that was lost is an item that the worker finds there when it asks again
    assert!(made <= items.len());
    let store = Store::read(&at("place")).unwrap();
    assert_eq!(tables(&study, &store, &at("out")), expected);
    assert!(study.items(&forecast, Some(&store), 0.0).unwrap().is_empty(), "nothing is left");
    // without one of them the study is not complete, and what is left is that
    std::fs::remove_file(at("place").join(&names[3])).unwrap();
    let store = Store::read(&at("place")).unwrap();
    assert_eq!(rows::missing(&study.design, &store).len(), 1);
    let left = study.items(&forecast, Some(&store), 0.0).unwrap();
    assert_eq!(left.iter().map(Item::object).collect::<Vec<_>>(), [names[3].clone()]);
}

/// Shards of two machines through one place; a machine that is lost loses what it had not published, and a mirror follows its place.
#[test]
fn machines_that_mirror_a_place_share_what_is_published() {
    let study = study();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let site = |machine: &str| Site::mirrored(at(machine), std::sync::Arc::new(Folder(at("place")))).unwrap();
    let stop = AtomicBool::new(false);
    let (whole, _) =
        study.run(Store::open(&at("whole"), Shard::WHOLE).unwrap(), &effort(&stop), &Quiet).unwrap();
    let expected = tables(&study, &whole, &at("whole"));
    for (machine, part) in [("a", "1/2"), ("b", "2/2")] {
        let shard = Shard::parse(part).unwrap();
        let store = Store::open_at(&site(machine), shard).unwrap();
        let effort = Effort { shard, ..effort(&stop) };
        let (store, outcome) = study.run(store, &effort, &Quiet).unwrap();
        assert!(outcome.made > 0 && store.len() >= outcome.made);
    }
    std::fs::remove_dir_all(at("a")).unwrap();
    let third = site("c");
    let store = Store::read_at(&third).unwrap();
    assert_eq!(tables(&study, &store, &at("out")), expected);
    // what is taken away there is not here any more
    let logs = || {
        std::fs::read_dir(at("c"))
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".log"))
            .count()
    };
    let before = logs();
    let gone = Folder(at("place")).list().unwrap().into_iter().find(|o| o.name.ends_with(".log")).unwrap();
    std::fs::remove_file(at("place").join(&gone.name)).unwrap();
    third.refresh().unwrap();
    assert_eq!(logs(), before - 1);
    assert!(!rows::missing(&study.design, &Store::read(third.folder()).unwrap()).is_empty());
}

#[test]
fn files_of_deploy_say_what_the_planner_assumes() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let said = [
        ("slurm/study.sbatch", format!("${{EVENKEEL_RETRIES:-{RETRIES}}}")),
        ("slurm/study.sbatch", format!("--cpus-per-task={CPUS_PER_TASK}\n")),
        ("slurm/submit.sh", format!("${{ITEM_MINUTES:-{ITEM_MINUTES}}}")),
        ("slurm/submit.sh", format!("${{CPUS:-{CPUS_PER_TASK}}}")),
        ("kubernetes/plan.yaml", format!("--item-minutes {ITEM_MINUTES} --cpus-per-task {CPUS_PER_TASK}'")),
        ("kubernetes/study.yaml", format!("backoffLimitPerIndex: {RETRIES}\n")),
        ("kubernetes/study.yaml", format!("cpu: \"{CPUS_PER_TASK}\"")),
    ];
    for (file, words) in said {
        let text = std::fs::read_to_string(deploy.join(file)).unwrap();
        assert!(text.contains(&words), "{file}: {words}");
    }
}

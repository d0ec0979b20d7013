//! `evenkeel study` as a person runs it: killed, resumed, sharded, on other numbers of threads, into folders that fail.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use evenkeel::Random;

const SMALL: &str = r#"
name = "small"
seeds = [0, 1]
[[subject]]
name = "crops"
model = "embedded:classifier"
data = "scenes-objects"
path = "6@32x32"
[[attack]]
kind = "pgd"
steps = 3
[[attack]]
kind = "bpda"
steps = 2
[[attack]]
kind = "fixed-seed"
steps = 2
[[corruption]]
kind = "fog"
[[defence]]
kind = "random"
[[defence]]
kind = "equivariance"
steps = 2
[[detector]]
kind = "variance"
"#;

fn evenkeel(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(args).current_dir(folder);
    command
}

fn output(folder: &Path, args: &[&str]) -> Output {
    evenkeel(folder, args).output().unwrap()
}

fn works(folder: &Path, args: &[&str]) -> String {
    let output = output(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn refused(folder: &Path, args: &[&str]) -> String {
    let output = output(folder, args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn scratch(experiment: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("my.toml"), experiment).unwrap();
    folder
}

/// Everything of a finished study that must not depend on how it was run.
fn records(folder: &Path) -> [Vec<u8>; 2] {
    ["records.parquet", "detections.parquet"].map(|name| std::fs::read(folder.join(name)).unwrap())
}

#[test]
fn killed_at_twenty_moments_and_resumed_it_comes_to_the_same_records() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    works(here, &["study", "run", "my.toml", "--threads", "1", "--out", "whole"]);
    let whole = records(&here.join("whole"));
    let mut random = Random::new(5);
    let (mut kills, mut finished) = (0, 0);
    while kills < 20 || finished == 0 {
        let folder = format!("torn-{finished}");
        let threads = if random.chance(0.5) { "1" } else { "2" };
        let mut run = evenkeel(here, &["study", "run", "my.toml", "--threads", threads, "--out", &folder])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let patience = if kills < 20 { random.uniform(0.0, 0.7) } else { 600.0 };
        let deadline = std::time::Instant::now() + Duration::from_secs_f32(patience);
        let ended = loop {
            match run.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if std::time::Instant::now() >= deadline => break None,
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        match ended {
            Some(status) => {
                assert!(status.success());
                assert!(records(&here.join(&folder)) == whole, "{folder} came to other records");
                finished += 1;
            }
            None => {
                run.kill().unwrap();
                run.wait().unwrap();
                kills += 1;
            }
        }
    }
}

#[test]
fn shards_merge_to_the_same_records_and_gaps_are_named() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    works(here, &["study", "run", "my.toml", "--out", "whole"]);
    for shard in ["1", "2", "3"] {
        let said =
            works(here, &["study", "run", "my.toml", "--shard", &format!("{shard}/3"), "--out", shard]);
        assert!(said.contains("this shard is done"), "{said}");
    }
    let gap = refused(here, &["study", "merge", "1", "3", "--out", "merged"]);
    assert!(gap.contains("crops") && gap.contains("000001"), "{gap}");
    works(here, &["study", "merge", "1", "2", "3", "--out", "merged"]);
    assert!(records(&here.join("merged")) == records(&here.join("whole")));
    works(here, &["study", "run", "my.toml", "--shard", "2/3", "--out", "1"]);
    let status = works(here, &["study", "status", "1"]);
    assert!(status.contains("2 images lack results"), "{status}");
}

/// As an array of jobs does it: the last one to end writes the tables, whichever it is.
#[test]
fn shards_that_run_at_once_in_one_folder_come_to_the_same_tables() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    works(here, &["study", "run", "my.toml", "--out", "whole"]);
    let run = |shard: &str| {
        let args = ["study", "run", "my.toml", "--threads", "1", "--out", "both", "--shard", shard];
        evenkeel(here, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let shards = [run("1/2"), run("2/2")];
    for mut shard in shards {
        assert!(shard.wait().unwrap().success());
    }
    assert!(records(&here.join("both")) == records(&here.join("whole")));
}

#[test]
fn tables_do_not_depend_on_who_reads_and_say_what_was_asked_last() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let program = env!("CARGO_BIN_EXE_evenkeel");
    let shell = |script: &str| {
        let script = script.replace("evenkeel", program);
        Command::new("bash").args(["-o", "pipefail", "-c", &script]).current_dir(here).output().unwrap()
    };
    let table = here.join("small.study/records.parquet");
    shell("evenkeel study run my.toml --limit 1 | true");
    assert!(table.exists(), "nobody read, and there is no table");
    std::fs::remove_file(&table).unwrap();
    if Path::new("/dev/full").exists() {
        let full = shell("evenkeel study run my.toml --limit 1 > /dev/full");
        assert!(table.exists());
        assert_eq!(full.status.code(), Some(2), "{}", String::from_utf8_lossy(&full.stderr));
    }
    // a design that cannot be read is written anew, and the results are used
    std::fs::write(here.join("small.study/study.json"), "{").unwrap();
    assert!(refused(here, &["study", "status", "small.study"]).contains("study.json"));
    let said = works(here, &["study", "run", "my.toml", "--limit", "1"]);
    assert!(said.contains("study.json") && said.contains("0 results made"), "{said}");
    // what was asked before does not pass for what is asked now
    let other = SMALL.replace("[[detector]]\nkind = \"variance\"\n", "").replace("steps = 3", "steps = 4");
    std::fs::write(here.join("other.toml"), other).unwrap();
    let said = works(here, &["study", "run", "other.toml", "--limit", "1"]);
    assert!(said.contains("complete"), "{said}");
    assert!(table.exists() && !here.join("small.study/detections.parquet").exists());
    works(here, &["study", "run", "my.toml", "--limit", "1", "--out", "mine"]);
    let said = refused(here, &["study", "merge", "mine", "--out", "small.study"]);
    assert!(said.contains("holds another study"), "{said}");
}

#[test]
fn a_changed_setting_runs_only_what_it_changes() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let made = |said: &str| said.split_whitespace().next().unwrap().parse::<usize>().unwrap();
    let first = made(&works(here, &["study", "run", "my.toml", "--limit", "2"]));
    assert_eq!(made(&works(here, &["study", "run", "my.toml", "--limit", "2"])), 0);
    let changed = SMALL.replace("kind = \"bpda\"\nsteps = 2", "kind = \"bpda\"\nsteps = 1");
    std::fs::write(here.join("my.toml"), changed).unwrap();
    let second = made(&works(here, &["study", "run", "my.toml", "--limit", "2"]));
    assert!(second > 0 && second < first / 2, "{second} of {first}");
    let more = made(&works(here, &["study", "run", "my.toml", "--limit", "3"]));
    assert!(more > 0 && more <= first, "{more}: one image more is one image's work");
}

#[test]
fn a_torn_log_and_a_damaged_one_are_told_and_made_good() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    works(here, &["study", "run", "my.toml", "--limit", "2"]);
    let whole = records(&here.join("small.study"));
    let log = here.join("small.study/shard-1-of-1.log");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() - 100]).unwrap();
    let said = works(here, &["study", "run", "my.toml", "--limit", "2"]);
    assert!(said.contains("cut short") && said.contains("1 results made"), "{said}");
    assert!(records(&here.join("small.study")) == whole);
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    let said = works(here, &["study", "run", "my.toml", "--limit", "2"]);
    assert!(said.contains("shard-1-of-1.log") && said.contains("are damaged"), "{said}");
    assert!(said.contains("1 results made"), "the one it touched: {said}");
    assert!(records(&here.join("small.study")) == whole);
}

#[test]
fn a_network_changed_midway_is_reported_and_nothing_is_lost() {
    let file = |ending: &str| {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models");
        std::fs::read(models.join(format!("scenes_classifier.{ending}"))).unwrap()
    };
    let scratch = scratch(&SMALL.replace("embedded:classifier", "net.onnx"));
    let here = scratch.path();
    std::fs::write(here.join("net.onnx"), file("onnx")).unwrap();
    std::fs::write(here.join("net.evenkeel.toml"), file("evenkeel.toml")).unwrap();
    works(here, &["study", "run", "my.toml", "--limit", "1"]);
    let before = std::fs::metadata(here.join("small.study/shard-1-of-1.log")).unwrap().len();
    let contract =
        String::from_utf8(file("evenkeel.toml")).unwrap().replace("0.45, 0.45, 0.45", "0.5, 0.5, 0.5");
    std::fs::write(here.join("net.evenkeel.toml"), contract).unwrap();
    let said = works(here, &["study", "run", "my.toml", "--limit", "1"]);
    assert!(said.contains("is not the network") && said.contains("net.onnx"), "{said}");
    assert!(std::fs::metadata(here.join("small.study/shard-1-of-1.log")).unwrap().len() > before);
    std::fs::write(here.join("net.evenkeel.toml"), file("evenkeel.toml")).unwrap();
    let back = works(here, &["study", "run", "my.toml", "--limit", "1"]);
    assert!(back.contains("\n0 results made") || back.starts_with("0 results made"), "{back}");
}

#[test]
fn folders_and_disks_that_fail_are_reported_in_a_sentence() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let said = refused(here, &["study", "run", "my.toml", "--out", "/proc/no-such-place"]);
    assert!(said.contains("/proc/no-such-place") && said.contains("--out"), "{said}");
    // files of this process may grow to 16 blocks of 1024 bytes; the signal that would end it is ignored, so writes fail
    let program = env!("CARGO_BIN_EXE_evenkeel");
    let script = format!("trap '' XFSZ; ulimit -f 16; exec {program} study run my.toml --limit 2 --out full");
    let full = Command::new("bash").args(["-c", &script]).current_dir(here).output().unwrap();
    let said = String::from_utf8_lossy(&full.stderr).into_owned();
    assert_eq!(full.status.code(), Some(2), "{said}");
    assert!(said.contains("could not be written") && said.contains("Make room"), "{said}");
    let said = works(here, &["study", "run", "my.toml", "--limit", "2", "--out", "full"]);
    assert!(!said.contains(", 0 were there"), "what was written before the disk was full is used: {said}");
    works(here, &["study", "run", "my.toml", "--limit", "2", "--out", "whole"]);
    assert!(records(&here.join("full")) == records(&here.join("whole")));
}

#[test]
fn two_runs_of_one_shard_do_not_meet() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let mut first = evenkeel(here, &["study", "run", "my.toml", "--threads", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = here.join("small.study/shard-1-of-1.log");
    while !log.exists() && first.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let second = output(here, &["study", "run", "my.toml", "--limit", "1"]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(said.contains("another process is running shard 1/1"), "{said}");
    works(here, &["study", "run", "my.toml", "--limit", "1"]);
}

#[test]
#[cfg(unix)]
fn asked_to_stop_it_says_how_to_go_on() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let run = evenkeel(here, &["study", "run", "my.toml", "--threads", "1", "--save-images"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = here.join("small.study/shard-1-of-1.log");
    while std::fs::metadata(&log).map_or(0, |m| m.len()) < 4000 {
        std::thread::sleep(Duration::from_millis(2));
    }
    Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the same command goes on"), "{said}");
    works(here, &["study", "run", "my.toml", "--save-images"]);
    let image = here.join("small.study/images/crops/pgd_0/000000");
    assert!(image.join("attacked.png").is_file() && image.join("equivariance.png").is_file());
}

/// Who logs out after `nohup` finds the study done.
#[test]
#[cfg(target_os = "linux")]
fn nohup_keeps_it_running() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let script = format!("exec nohup {} study run my.toml --threads 1", env!("CARGO_BIN_EXE_evenkeel"));
    let mut run = Command::new("bash")
        .args(["-c", &script])
        .current_dir(here)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = here.join("small.study/shard-1-of-1.log");
    while std::fs::metadata(&log).map_or(0, |m| m.len()) < 4000 {
        std::thread::sleep(Duration::from_millis(2));
    }
    Command::new("kill").args(["-HUP", &run.id().to_string()]).status().unwrap();
    assert!(run.wait().unwrap().success());
    assert!(here.join("small.study/records.parquet").exists());
}

#[test]
fn every_template_runs_on_what_comes_with_the_program() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let list = works(here, &["study", "new", "--list"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for needed in
        ["cityscapes-standard", "imagenet-adversarial", "views", "corruptions", "protocol", "cheap-defence"]
    {
        assert!(names.contains(&needed), "{needed} is not in\n{list}");
    }
    for name in names {
        let text = works(here, &["study", "new", name]);
        std::fs::write(here.join("t.toml"), text).unwrap();
        // the two that have most cells take as long for one image as the others for several
        let limit = if ["protocol", "cheap-defence"].contains(&name) { "1" } else { "2" };
        let said = works(here, &["study", "run", "t.toml", "--quick", "--limit", limit, "--out", name]);
        assert!(said.contains("complete:"), "{name}: {said}");
    }
    assert!(refused(here, &["study", "new", "nothing"]).contains("--list"));
}

#[test]
fn a_plan_counts_and_a_report_is_one_page_with_its_tables() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let plan = works(here, &["study", "plan", "my.toml", "--threads", "2"]);
    assert!(
        plan.contains("26 cells") && plan.contains("forward passes") && plan.contains("memory"),
        "{plan}"
    );
    works(here, &["study", "run", "my.toml", "--limit", "3"]);
    let plan = works(here, &["study", "plan", "my.toml", "--limit", "3", "--no-probe"]);
    assert!(plan.contains(" 0 results to make"), "{plan}");
    works(here, &["study", "report", "small.study", "--compare", "small.study"]);
    let read = |name: &str| std::fs::read_to_string(here.join("small.study/report").join(name)).unwrap();
    let page = read("index.html");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(
        !page.contains("http:") && !page.contains("https:") && !page.contains("<script"),
        "fetches nothing"
    );
    for words in
        ["worst case", "<svg", "AUROC", "× a forward pass", "bpda", "Comparison", "An honest evaluation"]
    {
        assert!(page.contains(words), "{words} is missing from the page");
    }
    let (markdown, latex) = (read("tables.md"), read("tables.tex"));
    assert!(markdown.contains("| equivariance |") && latex.contains("\\begin{tabular}"));
    assert!(read("crops-scores.csv").starts_with("attack,none,"));
    let again = page.clone();
    works(here, &["study", "report", "small.study", "--compare", "small.study"]);
    assert!(read("index.html").replace(' ', "") == again.replace(' ', ""), "the same results, the same page");
}

/// How many work items a plan wrote.
fn planned(here: &Path, out: &str) -> usize {
    let args = ["study", "plan", "my.toml", "--out", out, "--items", "items", "--item-minutes", "0.001"];
    works(here, &args);
    std::fs::read_to_string(here.join("items")).unwrap().lines().count()
}

#[test]
fn work_items_killed_and_run_again_come_to_the_records_of_one_process() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    works(here, &["study", "run", "my.toml", "--threads", "1", "--out", "whole"]);
    let items = planned(here, "items.study");
    assert!(items > 5, "{items}");
    let item = |number: usize| {
        let number = number.to_string();
        let args = ["study", "run", "my.toml", "--out", "items.study", "--items", "items", "--item", &number];
        evenkeel(here, &args)
    };
    let mut random = Random::new(3);
    let mut killed = 0;
    for number in 1..=items {
        let mut first = item(number).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f32(random.uniform(0.0, 0.3)));
        killed += usize::from(first.try_wait().unwrap().is_none());
        let _ = first.kill();
        first.wait().unwrap();
        // two at once: one of them is kept
        let mut twin = item(number).stdout(Stdio::null()).spawn().unwrap();
        assert!(item(number).output().unwrap().status.success());
        assert!(twin.wait().unwrap().success());
    }
    assert!(killed > 0);
    let again = item(1).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stdout).contains("was there"));
    let logs = std::fs::read_dir(here.join("items.study")).unwrap().map(|e| e.unwrap().file_name());
    let logs = logs.filter(|name| name.to_string_lossy().ends_with(".log")).count();
    assert_eq!(logs, items);
    works(here, &["study", "merge", "items.study", "--out", "merged"]);
    assert_eq!(records(&here.join("merged")), records(&here.join("whole")));
    assert_eq!(planned(here, "items.study"), 0);
}

#[test]
fn a_work_item_of_another_experiment_is_refused_and_a_cluster_is_planned() {
    let scratch = scratch(SMALL);
    let here = scratch.path();
    let args = ["study", "plan", "my.toml", "--items", "items", "--cluster", "100x8", "--mtbf", "10"];
    let told = works(here, &args);
    for words in ["core-hours", "stored", "the slowest cell", "without failures", "on 100 machines of 8"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    std::fs::write(here.join("my.toml"), SMALL.replace("6@32x32", "5@32x32")).unwrap();
    let args = ["study", "run", "my.toml", "--items", "items", "--item", "1"];
    assert!(refused(here, &args).contains("are not those that the work was planned with"));
    let args = ["study", "run", "my.toml", "--items", "items", "--item", "999"];
    assert!(refused(here, &args).contains("and no 999"));
    let args = ["study", "run", "my.toml", "--out", "s3://key@bucket/my"];
    let words = if cfg!(feature = "remote") { "from the environment" } else { "--features remote" };
    assert!(refused(here, &args).contains(words));
}

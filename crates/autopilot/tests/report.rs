//! `autopilot report`: one page of a run. The real binary, real git, scripted agents; the page is read
//! by an HTML parser and opened in Chromium.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

#[path = "report/browser.rs"]
mod browser;
#[path = "report/dom.rs"]
mod dom;

use autopilot_testkit::goal::{GOAL, answers, gated, step, workflow};
use autopilot_testkit::plan;
use autopilot_testkit::stage::{APPROVES, Ended, Stage, text};
use browser::{Door, Medium};
use dom::{Dom, Element};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

const WORKS: &str = "
- step: step
  do:
    - run: 'echo \"$AUTOPILOT_TASK_ID\" > \"$AUTOPILOT_TASK_ID.txt\"; echo done >> app.txt'
    - cost_usd: 0.01
    - answer: \"Done: wrote it\"
";
const FAILS: &str = "
- step: step
  task: bad
  do: [{ say: it could not be done }, { exit: 1 }]
";

fn stage(rules: &[&str]) -> Stage {
    let stage = Stage::new(BINARY);
    stage.agents(rules);
    stage.config("commands: { tests: sh test.sh }\n");
    stage.commit("settings");
    stage
}

fn two_iterations() -> Stage {
    let mut first =
        workflow("w1", &[step("good", &[]), step("bad", &[]), step("after", &["good", "bad"])]);
    first["colour"] = "red".into();
    stage(&[
        &answers("workflow", 1, &first),
        &answers("workflow", 2, &workflow("w2", &[step("bad", &[]), step("good", &["bad"])])),
        FAILS,
        WORKS,
        &answers("completion", 1, &json!({ "done": false, "reason": "bad is missing" })),
        &answers("completion", 2, &json!({ "done": true, "summary": "it is all there now" })),
    ])
}

fn parsed(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.out))
}

/// Writes the page of the newest run and reads it.
fn page(stage: &Stage) -> (PathBuf, Dom) {
    let path = PathBuf::from(stage.run(&["report"]).expect(0).out.trim());
    let dom = Dom::parse(&std::fs::read_to_string(&path).unwrap());
    is_sound(&dom);
    (path, dom)
}

/// Whatever is told on it: valid, self-contained, without anything that runs or leads elsewhere.
fn is_sound(dom: &Dom) {
    assert_eq!(dom.errors(), [""; 0]);
    for gone in
        ["script", "link", "img", "iframe", "object", "embed", "form", "base", "video", "use"]
    {
        assert_eq!(dom.tags(gone).len(), 0, "{gone}");
    }
    let ids: Vec<String> =
        dom.all(|_| true).iter().filter_map(|element| element.attribute("id")).collect();
    let unique: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "ids are unique: {ids:?}");
    for element in dom.all(|_| true) {
        for (name, value) in element.attributes() {
            assert!(!name.starts_with("on"), "<{} {name}={value}>", element.name());
            if ["href", "src", "srcset", "action", "data"].contains(&name.as_str()) {
                let target = value.strip_prefix('#').unwrap_or_else(|| panic!("leads to {value}"));
                assert!(ids.iter().any(|id| id == target), "{value} leads nowhere");
            }
            if name == "style" {
                assert!(!value.contains("url("), "{value}");
            }
        }
    }
    let html = &dom.tags("html")[0];
    assert_eq!(html.attribute("lang").as_deref(), Some("en"));
    let meta = dom.tags("meta");
    assert!(meta.iter().any(|meta| meta.attribute("charset").as_deref() == Some("utf-8")));
    let policy = meta
        .iter()
        .find(|meta| meta.attribute("http-equiv").as_deref() == Some("Content-Security-Policy"));
    assert!(policy.unwrap().attribute("content").unwrap().starts_with(POLICY));
    assert_eq!(dom.tags("h1").len(), 1);
    assert!(!dom.tags("title")[0].text().trim().is_empty());
    is_navigable(dom);
    for element in dom.tags("style") {
        let style = element.text();
        assert!(!style.contains("@import") && !style.contains("url("), "{style}");
    }
}

/// For whoever hears the page or goes through it by its headings.
fn is_navigable(dom: &Dom) {
    let mut level = 0;
    for heading in dom.all(|element| {
        let name = element.name();
        name.len() == 2 && name.starts_with('h') && name != "hr"
    }) {
        let next: u32 = heading.name()[1..].parse().unwrap();
        assert!(next <= level + 1, "h{level} is followed by h{next}: {}", heading.text());
        level = next;
    }
    for head in dom.tags("th") {
        let scope = head.attribute("scope").unwrap_or_default();
        assert!(["col", "row"].contains(&scope.as_str()), "{}", head.text());
        assert!(!head.text().trim().is_empty(), "a head of a column says what is in it");
    }
    for element in dom.all(|element| {
        element.name() == "a" || element.attribute("role").as_deref() == Some("region")
    }) {
        let name = element.attribute("aria-label").unwrap_or_else(|| element.text());
        assert!(!name.trim().is_empty(), "<{}> has no name", element.name());
    }
}

fn texts(elements: &[Element]) -> Vec<String> {
    elements.iter().map(|element| element.text().trim().to_owned()).collect()
}

fn cells(section: &Element) -> Vec<Vec<String>> {
    let row = |row: &Element| texts(&row.all(|cell| ["td", "th"].contains(&cell.name().as_str())));
    section.tags("tr").iter().skip(1).map(row).collect()
}

#[test]
fn the_page_of_a_goal_tells_every_iteration() {
    let stage = two_iterations();
    let ended = stage.run(&GOAL).expect(0);
    let dir = std::fs::read_dir(stage.path("runs/autopilot")).unwrap();
    let dir = dir.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let there = dir.join("report.html");
    assert!(there.is_file(), "it is there at the end of the run");
    assert!(ended.said().contains(&format!("report: {}", text(&there))), "{}", ended.said());
    let (path, dom) = page(&stage);
    assert_eq!(path, there);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let head = dom.tags("header")[0].text();
    assert!(head.contains(GOAL[1]) && head.contains("done"), "{head}");
    assert!(head.contains("The goal was met in 2 iterations, and the controller's own validation"));
    let outcome = dom.by_id("outcome").text();
    for part in [
        "The controller ran its validation itself on the integrated result of iteration 2",
        "is the reviewer's claim (iteration 2)",
        "git merge autopilot/run-",
        "$0.04",
    ] {
        assert!(outcome.contains(part), "{part}: {outcome}");
    }

    let (first, second) = (dom.by_id("iteration-1"), dom.by_id("iteration-2"));
    let status = |section: &Element| -> Vec<(String, String)> {
        cells(section).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect()
    };
    let pair = |id: &str, word: &str| (id.to_owned(), word.to_owned());
    assert_eq!(
        status(&first),
        [pair("good", "succeeded"), pair("bad", "failed"), pair("after", "succeeded")]
    );
    assert_eq!(status(&second), [pair("bad", "succeeded"), pair("good", "succeeded")]);
    assert!(
        first.text().contains("The reviewer says: not done")
            && first.text().contains("bad is missing")
    );
    assert!(
        second.text().contains("The reviewer says: done")
            && second.text().contains("it is all there now")
    );
    // Coloured by a class and worded in the box.
    let failed = first.tags("svg")[0].classes("m-failed");
    assert_eq!(failed.len(), 1);
    assert!(failed[0].text().contains("✗ failed · bad"), "{}", failed[0].text());
    assert_eq!(first.tags("svg")[0].classes("e").len(), 2, "an arrow per dependency");
    assert_eq!(second.tags("svg")[0].classes("e").len(), 1);
    assert!(dom.by_id("warnings").text().contains("`colour` of the workflow is unknown"));
}

#[test]
fn every_question_is_there_with_prompt_answer_session_and_cost() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let (_, dom) = page(&stage);
    let calls = dom.classes("call");
    let sessions = parsed(&stage.run(&["sessions", "--json"]).expect(0));
    assert_eq!(calls.len(), 9, "2 workflows, 5 steps, 2 completions");
    assert_eq!(dom.classes("prompt").len(), calls.len());
    assert_eq!(dom.classes("output").len(), calls.len());
    for session in sessions["sessions"].as_array().unwrap() {
        let id = session["session"].as_str().unwrap();
        let is_in = |call: &&Element| texts(&call.tags("dd")).iter().any(|fact| fact == id);
        let found: Vec<&Element> = calls.iter().filter(is_in).collect();
        assert_eq!(found.len(), 1, "{id}");
        if let Some(resume) = session["resume"].as_str() {
            assert!(found[0].text().contains(resume), "{resume}: {}", found[0].text());
        }
    }
    let good = dom.all(|element| {
        element.has_class("call")
            && element.text().contains("Do good.")
            && element.text().contains("$0.01")
    });
    assert!(!good.is_empty());
    let said = texts(&good[0].classes("output"));
    assert!(said[0].contains("Done: wrote it"), "{said:?}");
    assert!(good[0].text().contains("script"), "who did it");
    // What the controller ran itself, with how it ended.
    let checks = texts(&dom.classes("check"));
    let passed =
        checks.iter().filter(|check| check.contains("exit 0") && check.contains("sh test.sh"));
    assert_eq!(passed.count(), 3, "the base and both iterations: {checks:?}");
}

#[test]
fn the_timeline_has_a_bar_for_each_attempt() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let (_, dom) = page(&stage);
    let shown = parsed(&stage.run(&["show", "--json"]).expect(0));
    let attempts = shown["attempts"].as_array().unwrap();
    let line = dom.by_id("timeline");
    for attempt in attempts {
        let href = format!("#attempt-{}", attempt["id"].as_str().unwrap());
        let bars = line.all(|bar| bar.attribute("href").as_deref() == Some(href.as_str()));
        assert_eq!(bars.len(), 1, "{href}");
        let label = bars[0].attribute("aria-label").unwrap();
        let step = attempt["step"].as_str().unwrap();
        assert!(label.starts_with(&format!("{step}: ")), "{label}");
        let outcome = attempt["outcome"].as_str().unwrap();
        assert!(label.contains(outcome), "{label} should say {outcome}");
        let style = bars[0].attribute("style").unwrap();
        assert!(style.starts_with("left:") && style.contains(";width:"), "{style}");
    }
    assert_eq!(line.classes("bar").len(), attempts.len(), "nothing waited");
    assert_eq!(line.classes("life").len(), 6, "the run and its five steps");
}

#[test]
fn without_tests_the_page_says_that_nothing_was_proven() {
    let stage = Stage::new(BINARY);
    stage.agents(&[
        &answers("workflow", 1, &workflow("w", &[step("one", &[])])),
        WORKS,
        &answers("completion", 1, &json!({ "done": true, "summary": "trust me" })),
    ]);
    stage.config("");
    stage.run(&GOAL).expect(0);
    let (_, dom) = page(&stage);
    let head = dom.tags("header")[0].text();
    assert!(head.contains("according to the reviewer alone: nothing was proven"), "{head}");
    assert!(dom.by_id("outcome").text().contains("Nothing was proven."));
}

#[test]
fn a_reviewer_that_was_overruled_is_told_as_such() {
    let breaks = "
- step: step
  do:
    - append: { app.txt: \"broken\\n\" }
    - answer: Done
";
    let stage = stage(&[
        &answers("workflow", 1, &workflow("w1", &[step("one", &[])])),
        breaks,
        &answers("completion", 1, &json!({ "done": true, "summary": "all is well" })),
    ]);
    stage.run(&[&GOAL[..], &["--max-iterations", "1"]].concat()).expect(11);
    let (_, dom) = page(&stage);
    let said = dom.by_id("iteration-1").text();
    assert!(said.contains("overruled by the controller") && said.contains("tests"), "{said}");
    let head = dom.tags("header")[0].text();
    assert!(head.contains("not finished within the limits"), "{head}");
    assert!(
        !dom.by_id("outcome").text().contains("git merge"),
        "what is not done is not to be merged"
    );
    assert!(dom.by_id("limits").text().contains("used up"));
    let check = dom.all(|element| element.has_class("check") && element.text().contains("exit 1"));
    assert!(!check.is_empty());
}

#[test]
fn it_goes_where_it_is_told_to() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let run = stage.status()["run_id"].as_str().unwrap().to_owned();
    let told = parsed(&stage.run(&["report", &run, "--json"]).expect(0));
    assert_eq!(told["run_id"], *run);
    assert!(told["path"].as_str().unwrap().ends_with(&format!("runs/autopilot/{run}/report.html")));
    let out = stage.folder().join("page.html");
    let said = stage.run(&["report", &run[..8], "--out", &text(&out)]).expect(0).out;
    assert_eq!(said.trim(), text(&out));
    let told = parsed(&stage.run(&["report", "--json", "-o", "here.html"]).expect(0));
    let there = stage.path("here.html");
    let bytes = there.metadata().unwrap().len();
    assert_eq!(
        told,
        json!({ "run_id": run, "path": text(there.canonicalize().unwrap()), "bytes": bytes })
    );
    let both = stage.run(&["report", "--json", "-o", "-"]).expect(64);
    assert_eq!(both.says(&["`--out -` prints the page", "leave one of them out"]).out, "");
    let printed = stage.run(&["report", "--out", "-"]).expect(0).out;
    is_sound(&Dom::parse(&printed));
    let undated = |page: &str| page.split("Written ").next().unwrap().to_owned();
    assert_eq!(undated(&printed), undated(&std::fs::read_to_string(&out).unwrap()));
    let nowhere = stage.folder().join("no/such/page.html");
    stage.run(&["report", "--out", &text(&nowhere)]).expect(10).says(&["cannot write", "--out"]);
    let left: Vec<_> = std::fs::read_dir(stage.path(&format!("runs/autopilot/{run}")))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".tmp"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn with_another_repository_files_are_meant_from_there() {
    let stage = two_iterations();
    let elsewhere = |args: &[&str]| {
        let mut command = stage.command(&[&["-C", "project"], args].concat());
        command.current_dir(stage.folder());
        stage.start_command(command).wait()
    };
    elsewhere(&["run", "tasks/say-done.md", "--dry-run"]).expect(0);
    elsewhere(&["goal", GOAL[1], "--out", "kept"]).expect(0);
    assert_eq!(elsewhere(&["report", "-o", "page.html"]).expect(0).out.trim(), "project/page.html");
    elsewhere(&["graph", "--out", "graph.svg"]).expect(0);
    stage.write("plan.json", &plan::plan(&[plan::task("a", &[])]).to_string());
    elsewhere(&["graph", "--plan", "plan.json"]).expect(0).says(&["Write a"]);
    elsewhere(&["task", "lint", "tasks/say-done.md"]).expect(0).says(&["1 task file"]);
    elsewhere(&["task", "list", "--dir", "tasks"]).expect(0).says(&["say-done"]);
    let template = stage.read("tasks/say-done.md");
    stage.write("form.md", &template);
    let new = ["task", "new", "Fresh", "--dir", "tasks", "--template", "form.md"];
    let new = elsewhere(&new).expect(0).says(&["autopilot -C project run tasks/"]);
    assert!(new.out.starts_with("project/tasks/"), "{}", new.out);
    for made in ["kept", "page.html", "graph.svg"] {
        assert!(stage.has(made) && !stage.folder().join(made).exists(), "{made}");
    }
    elsewhere(&["report", "--help"]).expect(0).says(&["relative to it too"]);
}

#[test]
fn an_unknown_run_is_a_usage_error_with_the_nearest() {
    let stage = two_iterations();
    stage.run(&["report"]).expect(64).says(&["no runs in this repository yet"]);
    stage.run(&GOAL).expect(0);
    let run = stage.status()["run_id"].as_str().unwrap().to_owned();
    let wrong = format!("{}x", &run[..run.len() - 1]);
    let nearest = format!("did you mean `{run}`?");
    stage.run(&["report", &wrong]).expect(64).says(&["no run `", &nearest]);
    stage.run(&["report", "zzz"]).expect(64).says(&["autopilot runs"]);
}

/// What an agent may say to whoever opens the page.
const HOSTILE: &str = "</pre></details></main></body><script>document.title='owned'</script>\
<img src=x onerror=\"document.title='owned'\"><svg onload=alert(1)><style>*{display:none}</style>\
<a href=\"javascript:alert(1)\">x</a><!-- ]]> &amp; --><meta http-equiv=refresh content=0>";

fn hostile_run(port: u16) -> Stage {
    let evil = format!("{HOSTILE}<img src='http://127.0.0.1:{port}/pixel'>");
    let mut one = step("one", &[]);
    one["goal"] = format!("Do it. {evil}").into();
    let says = format!(
        "\n- step: step\n  do:\n    - write: {{ app.txt: \"start\\ndone\\n\" }}\n    - answer: {}\n",
        json!(format!("\u{1b}[31mred\u{1b}[0m \u{7}bell\u{202e} {evil}"))
    );
    let stage = stage(&[
        &answers("workflow", 1, &workflow("w", &[one])),
        &says,
        &answers("completion", 1, &json!({ "done": true, "summary": evil })),
    ]);
    stage.run(&["goal", &format!("Make app.txt say done </title>{evil}")]).expect(0);
    stage
}

#[test]
fn what_agents_say_is_text_and_nothing_else() {
    let stage = hostile_run(9);
    let (_, dom) = page(&stage);
    let output = texts(&dom.classes("output")).join("\n");
    assert!(output.contains("<script>document.title='owned'</script>"), "it is there to be read");
    assert!(output.contains("red \\x07bell\\u{202e}"), "{output}");
    assert!(!dom.text().contains('\u{1b}') && !dom.text().contains('\u{7}'));
    assert!(dom.tags("h1")[0].text().contains("</title>"));
    assert!(dom.by_id("iteration-1").text().contains("onerror"));
    assert_eq!(dom.tags("main").len(), 1);
}

#[test]
fn files_of_any_size_and_content_are_shown_in_part() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let file = |part: &str| stage.views(part).first().unwrap().clone();
    let mut big = b"BEGIN \xff\xfe <b>\x00".to_vec();
    big.resize(10 << 20, b'x');
    big.extend_from_slice(b" END &");
    std::fs::write(file("good-step/output.txt"), &big).unwrap();
    let secret = stage.folder().join("elsewhere");
    std::fs::write(&secret, "not of this run").unwrap();
    let linked = file("after-step/output.txt");
    std::fs::remove_file(&linked).unwrap();
    std::os::unix::fs::symlink(&secret, &linked).unwrap();
    std::fs::write(file("bad-step/prompt.txt"), "say the bearer abc123").unwrap();
    let (path, dom) = page(&stage);
    assert!(path.metadata().unwrap().len() < 2 << 20, "{}", path.metadata().unwrap().len());
    let outputs = texts(&dom.classes("output"));
    let shown = outputs.iter().find(|text| text.contains("BEGIN")).unwrap();
    assert!(shown.contains("BEGIN \u{fffd}\u{fffd} <b>\\x00xxx") && shown.contains("xxx END &"));
    assert!(
        shown.contains("About 10.4 MB left out. The whole is in .autopilot/artifacts/"),
        "{}",
        &shown[shown.len() - 300..]
    );
    assert!(shown.contains("good-step/output.txt"));
    assert!(!dom.text().contains("not of this run"), "no link is followed");
    assert!(!dom.text().contains("abc123"), "secrets are hidden here too");
    assert!(dom.text().contains("say the [redacted]"));
}

#[test]
fn a_run_under_way_and_a_killed_one_say_so() {
    let (stage, gate) = gated(BINARY, WORKS);
    let run = stage.start(&GOAL);
    stage.wait_until("the second step works", |stage| {
        !stage.views("two-step/prompt.txt").is_empty()
    });
    let (path, dom) = page(&stage);
    let head = dom.tags("header")[0].text();
    assert!(head.contains(&format!("still going (process {}", run.pid())), "{head}");
    assert_eq!(cells(&dom.by_id("iteration-1"))[1][1], "running");
    assert!(!dom.text().contains("git merge"), "nothing to merge yet");
    run.signal("KILL");
    run.wait();
    let (_, dom) = page(&stage);
    let head = dom.tags("header")[0].text();
    assert!(
        head.contains("The process of the run died") && head.contains("autopilot resume"),
        "{head}"
    );
    assert!(!head.contains("still going"));
    let two = dom.by_id("timeline").all(|bar| {
        bar.attribute("aria-label").is_some_and(|label| label.starts_with("step: interrupted"))
    });
    assert_eq!(two.len(), 1);
    std::fs::write(gate, "").unwrap();
    stage.run(&["resume"]).expect(0);
    let dom = Dom::parse(&std::fs::read_to_string(&path).unwrap());
    is_sound(&dom);
    assert!(dom.tags("header")[0].text().contains("The goal was met"), "written at the end");
    // The time without a process is on the axis as waiting.
    let waits = dom.by_id("timeline").classes("wait");
    assert_eq!(waits.len(), 1);
    assert!(waits[0].attribute("aria-label").unwrap().starts_with("no process was running"));
}

#[test]
fn a_plan_and_a_task_have_pages_too() {
    let tasks = [plan::task("a", &[]), plan::task("b", &["a"])];
    let stage = plan::stage(BINARY, &plan::plan(&tasks));
    stage.run(&plan::RUN).expect(0);
    let (path, dom) = page(&stage);
    let run = stage.status()["run_id"].as_str().unwrap().to_owned();
    let beside = stage.path(&format!(".autopilot/artifacts/{run}/report.html"));
    assert_eq!(path.canonicalize().unwrap(), beside.canonicalize().unwrap());
    assert!(dom.tags("header")[0].text().contains("2 of 2 tasks done."));
    let graph = dom.by_id("graph");
    assert_eq!(texts(&graph.classes("tally")), ["2 tasks: 2 done"]);
    assert_eq!(graph.tags("svg")[0].classes("m-done").len(), 2);
    assert_eq!(graph.tags("svg")[0].classes("e").len(), 1);
    let outcome = dom.by_id("outcome").text();
    assert!(
        outcome.contains("Validation by the controller passed for 2 of 2 closed tasks."),
        "{outcome}"
    );
    assert!(outcome.contains("Every task leaves a file."), "what was asked: {outcome}");
    assert!(texts(&dom.classes("said")).iter().any(|said| said.starts_with("approved")));

    let stage = Stage::new(BINARY);
    stage.config("commands: { tests: sh test.sh }\n");
    stage.run_task().expect(0);
    let (_, dom) = page(&stage);
    assert!(dom.tags("header")[0].text().contains("1 of 1 task done."));
    // The same state, the same graph: sessions and replay find their files beside the page.
    stage.run(&["sessions"]).expect(0);
}

/// Where pictures are left for people to look at.
fn picture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn in_a_browser_nothing_runs_and_nothing_is_asked_for() {
    let door = Door::open();
    let stage = hostile_run(door.port);
    let (path, dom) = page(&stage);
    let title = dom.tags("title")[0].text();
    let seen = Dom::parse(&browser::dom(&path));
    assert_eq!(seen.tags("title")[0].text(), title, "no script changed it");
    assert_eq!(seen.tags("img").len() + seen.tags("script").len(), 0);
    assert_eq!(door.knocks(), 0);

    // Were something to get through as markup, the page's own policy still stops it.
    let whole = std::fs::read_to_string(&path).unwrap();
    let evil = format!(
        "<script>document.title='owned'</script><img src='http://127.0.0.1:{0}/x' \
         onerror=\"document.title='owned'\"><link rel=stylesheet href='http://127.0.0.1:{0}/y'>",
        door.port
    );
    let planted = stage.folder().join("planted.html");
    let with_evil = whole.replacen("<main id=\"main\">", &format!("<main id=\"main\">{evil}"), 1);
    assert_ne!(with_evil, whole);
    std::fs::write(&planted, &with_evil).unwrap();
    let seen = Dom::parse(&browser::dom(&planted));
    assert_eq!(seen.tags("title")[0].text(), title, "the policy lets no script run");
    assert_eq!(door.knocks(), 0, "the policy lets nothing be fetched");

    // And the means of this test notice it where there is no policy.
    std::fs::write(&planted, with_evil.replace("Content-Security-Policy", "X-None")).unwrap();
    let seen = Dom::parse(&browser::dom(&planted));
    assert_eq!(seen.tags("title")[0].text(), "owned");
    assert!(door.knocks() > 0);
}

#[test]
fn it_is_drawn_in_light_in_dark_and_on_a_phone() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let (path, _) = page(&stage);
    std::fs::copy(&path, picture("report.html")).unwrap();
    let dark = "--blink-settings=preferredColorScheme=0";
    for (name, size, more) in [
        ("report-light.png", "1280,3600", &[][..]),
        ("report-dark.png", "1280,3600", &[dark][..]),
        ("report-phone.png", "390,3600", &[][..]),
    ] {
        let to = picture(name);
        let _ = std::fs::remove_file(&to);
        browser::screenshot(&path, &to, size, more);
        assert!(to.metadata().unwrap().len() > 10_000, "{name} shows something");
    }
}

/// How many windows are opened until one has the focus.
const WINDOWS_MAX: usize = 10;

#[test]
fn with_the_keyboard_everything_is_reached_and_where_it_is_is_seen() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let (path, _) = page(&stage);
    let script = "
        document.querySelectorAll('details').forEach(it => it.open = true);
        const all = [...document.querySelectorAll('a, summary, pre, .wide')];
        const unseen = all.filter(it => {
            it.focus({ focusVisible: true });
            const style = getComputedStyle(it);
            const is_seen = style.outlineStyle == 'solid' && parseFloat(style.outlineWidth) >= 2;
            return document.activeElement !== it || it.tabIndex < 0 || !is_seen;
        });
        return [document.hasFocus(), all.length, unseen.map(it => it.outerHTML.slice(0, 120))];";
    // A window that has not got the focus yet shows it nowhere; then it is opened once more.
    let look = |_| browser::found(&path, Medium::Screen, script, &[]);
    let found = (0..WINDOWS_MAX).map(look).find(|found| found[0] == true);
    let found = found.unwrap_or_else(|| panic!("no window got the focus"));
    assert!(found[1].as_u64().unwrap() > 60, "{found}");
    assert_eq!(found[2], json!([]));
}

#[test]
fn on_paper_all_attempts_are_there_in_dark_on_white() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let (path, dom) = page(&stage);
    let attempts = dom.tags("article").len();
    assert!(printed(&path) > 6, "with what is closed on the screen");
    let script = "
        const style = it => getComputedStyle(document.querySelector(it));
        const shown = [...document.querySelectorAll('article')].filter(it => it.checkVisibility());
        const wide = [...document.querySelectorAll('body *')]
            .filter(it => it.getBoundingClientRect().right > innerWidth + 1 && !it.closest('svg'));
        return { attempts: shown.length, nav: style('nav').display, page: style('body').backgroundColor,
            ink: style('body').color, wide: wide.map(it => it.outerHTML.slice(0, 120)),
            hint: style('.paper').display };";
    // Also of somebody whose screen is dark.
    let dark = ["--blink-settings=preferredColorScheme=0"];
    let found = browser::found(&path, Medium::Paper, script, &dark);
    assert_eq!(
        found,
        json!({
            "attempts": attempts, "nav": "none", "page": "rgb(255, 255, 255)",
            "ink": "rgb(15, 23, 42)", "wide": [], "hint": "block",
        })
    );
    let on_screen = browser::found(&path, Medium::Screen, script, &dark);
    assert_ne!(on_screen["page"], found["page"], "the screen is dark: {on_screen}");
    assert_ne!(on_screen["attempts"], found["attempts"], "most are closed there");
    assert_eq!((&on_screen["nav"], &on_screen["hint"]), (&json!("flex"), &json!("none")));
}

fn printed(page: &std::path::Path) -> usize {
    browser::printed(page, &picture("report.pdf"))
}

#[test]
fn show_tells_a_goal_on_one_screen() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let run = stage.status()["run_id"].as_str().unwrap().to_owned();
    let text_shown = stage.run(&["show", &run]).expect(0).out;
    let object = parsed(&stage.run(&["show", &run, "--json"]).expect(0));
    assert!(text_shown.lines().count() <= 40, "one screen:\n{text_shown}");
    let iterations = object["iterations"].as_array().unwrap();
    assert_eq!(iterations.len(), 2);
    let status = |at: usize| -> Vec<String> {
        let steps = iterations[at]["steps"].as_array().unwrap();
        let word = |step: &Value| {
            format!("{} {}", step["id"].as_str().unwrap(), step["status"].as_str().unwrap())
        };
        steps.iter().map(word).collect()
    };
    assert_eq!(status(0), ["good succeeded", "bad failed", "after succeeded"]);
    assert_eq!(status(1), ["bad succeeded", "good succeeded"]);
    assert_eq!(iterations[0]["completion"]["reason"], "bad is missing");
    assert_eq!(
        (&iterations[1]["validation"], &iterations[1]["overruled"]),
        (&json!("passed"), &json!(false))
    );
    assert_eq!(object["run"]["run_id"], *run, "what was there before still is");
    assert!(object["attempts"].as_array().unwrap().len() > 9);
    let listed = parsed(&stage.run(&["sessions", "--json"]).expect(0));
    let listed: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["session"].as_str().unwrap())
        .collect();
    for step in iterations.iter().flat_map(|it| it["steps"].as_array().unwrap()) {
        let session = step["session"].as_str().unwrap();
        assert!(listed.contains(&session), "{session} is none of {listed:?}");
        assert!(text_shown.contains(&format!("session {session}")), "{text_shown}");
    }
    for part in [
        "iteration 1  w1",
        "reviewer: not done: bad is missing",
        "reviewer: done: it is all there now",
        "validation: passed",
        object["artifacts"].as_str().unwrap(),
        object["report_path"].as_str().unwrap(),
        "git merge autopilot/run-",
    ] {
        assert!(text_shown.contains(part), "{part}:\n{text_shown}");
    }
    // A step is still shown like any task.
    stage.run(&["show", "bad"]).expect(0).says(&["task bad  FAILED", "exit 1"]);
}

#[test]
fn show_of_a_killed_goal_says_how_to_go_on() {
    let (stage, _) = gated(BINARY, WORKS);
    let run = stage.start(&GOAL);
    stage.wait_until("the second step works", |stage| {
        !stage.views("two-step/prompt.txt").is_empty()
    });
    stage.run(&["show"]).expect(0).says(&["two", "running", "autopilot stop"]);
    run.signal("KILL");
    run.wait();
    let shown = stage.run(&["show"]).expect(0).says(&["INTERRUPTED", "autopilot resume"]);
    assert!(!shown.out.contains("git merge"), "{}", shown.out);
    let listed = parsed(&stage.run(&["runs", "--json"]).expect(0));
    assert_eq!(listed[0]["outcome"], Value::Null);
    assert_eq!(listed[0]["state"], "INTERRUPTED");
}

#[test]
fn runs_lists_goals_with_iterations_and_outcome() {
    let stage = two_iterations();
    let args = [&GOAL[..], &["--max-iterations", "1"]].concat();
    stage.run(&args).expect(11);
    let ended = stage.run(&[&GOAL[..], &["--json"]].concat()).expect(0);
    let path = parsed(&ended)["report_path"].as_str().unwrap().to_owned();
    assert!(path.ends_with("/report.html") && PathBuf::from(path).is_file());
    let listed = parsed(&stage.run(&["runs", "--json"]).expect(0));
    let told = |run: &Value| json!([run["mode"], run["iterations"], run["outcome"], run["state"]]);
    assert_eq!(told(&listed[0]), json!(["goal", 2, "done", "DONE"]));
    assert_eq!(told(&listed[1]), json!(["goal", 1, "not_converged", "FAILED"]));
    let table = stage.run(&["runs"]).expect(0).out;
    assert!(table.lines().next().unwrap().contains("iterations"), "{table}");
    assert!(table.lines().all(|line| line.contains("goal") || line.starts_with("run")), "{table}");
}

/// A word that "passed" alone would contradict.
const RED: &str = "tests failed with exit code 1, as on the base; only new failures counted";

#[test]
fn what_fails_as_on_the_base_is_never_told_as_passed_of_tasks() {
    let tasks = [plan::task("a", &[]), plan::task("b", &["a"])];
    let stage = plan::stage(BINARY, &plan::plan(&tasks));
    stage.write("test.sh", "echo 'test x ... FAILED'; exit 1\n");
    stage.commit("red");
    let told = stage.run(&[&plan::RUN[..], &["--allow-red-base"]].concat()).expect(0);
    let told = told.says(&["proof: only that nothing more fails than on the base"]);
    assert!(!told.said().contains("validate passed"), "{}", told.said());
    let (_, dom) = page(&stage);
    let head = dom.tags("header")[0].text();
    assert!(
        head.contains("2 of 2 tasks done; the controller's checks fail as they did on the base"),
        "{head}"
    );
    let lists = dom.by_id("outcome").classes("pair")[0].tags("ul");
    let (proven, not) = (lists[0].text(), lists[1].text());
    assert!(!proven.contains("alidation"), "{proven}");
    assert!(not.contains(&format!("controller of a, b did not pass: {RED}")), "{not}");
    assert!(not.contains("On the base, before any change, tests failed with exit code 1; the run"));
    for attempt in dom.tags("article") {
        let (title, text) = (attempt.tags("h4")[0].text(), attempt.text());
        let is_red = ["preflight", "validate"].iter().any(|step| title.contains(step));
        assert!(!is_red || title.contains("fail"), "{title}");
        assert!(!is_red || !text.contains("passed"), "{text}");
    }
    let shown = stage.run(&["show"]).expect(0).out;
    let lines = shown.lines().filter(|line| line.contains(" validate "));
    assert!(
        lines.clone().count() >= 2 && lines.clone().all(|line| line.contains("as on the base"))
    );
}

#[test]
fn what_was_red_and_is_repaired_is_told_as_passed() {
    let stage = Stage::new(BINARY);
    stage.config("commands: { tests: sh test.sh }\n");
    stage.write("app.txt", "broken\n");
    stage.commit("red");
    stage.agents(&[
        "\n- step: build\n  do: [{ write: { app.txt: \"done\\n\" } }, { answer: { changed_files: [x], notes: x } }]\n",
        APPROVES,
    ]);
    let told = stage.run(&["run", "tasks/say-done.md", "--allow-red-base"]).expect(0);
    assert!(!told.out.contains("proof:"), "{}", told.out);
    let (_, dom) = page(&stage);
    let outcome = dom.by_id("outcome").text();
    assert!(outcome.contains("Validation by the controller passed for 1 of 1"), "{outcome}");
    assert!(
        outcome.contains("On the base, before any change, tests failed with exit code 1"),
        "{outcome}"
    );
    assert!(dom.tags("header")[0].text().contains("1 of 1 task done."));
}

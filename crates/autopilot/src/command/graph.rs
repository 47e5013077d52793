//! `autopilot graph`: draws the tasks of a run or a plan with their dependencies.

use super::{Done, done, past, place, work};
use crate::cli::{Global, GraphArgs as Asked, GraphFormat};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::config::Config;
use autopilot_core::plan::{self, Plan, PlanRules};
use autopilot_core::task_file::TaskSpec;
use autopilot_engine::query::graph as query;
use autopilot_engine::workspace;
use autopilot_host::{escape, file};
use autopilot_view::graph::{self, GraphExtent, GraphPicture, Paint};
use camino::Utf8Path;
use std::collections::BTreeMap;

/// The largest plan file that is read.
const PLAN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The width of the text when there is no terminal.
const COLUMNS_USUAL: usize = 100;
/// File name extensions and the formats they stand for.
const ENDINGS: [(&str, GraphFormat); 9] = [
    ("txt", GraphFormat::Text),
    ("md", GraphFormat::Mermaid),
    ("mmd", GraphFormat::Mermaid),
    ("mermaid", GraphFormat::Mermaid),
    ("svg", GraphFormat::Svg),
    ("dot", GraphFormat::Dot),
    ("gv", GraphFormat::Dot),
    ("json", GraphFormat::Json),
    ("text", GraphFormat::Text),
];

/// Prints or writes the graph.
pub fn graph(global: &Global, args: &Asked) -> Done {
    let format = format(global, args)?;
    let mut graph = match &args.plan {
        Some(path) => of_plan(global, &global.path(path))?,
        None => query::of_run(&past::must(global)?, args.run.as_deref())?,
    };
    graph.for_each_text(|text| *text = escape::one_line(text).into_owned());
    let text = drawn(&graph, format, args);
    match args.out.as_deref().map(|out| global.path(out)) {
        Some(path) => {
            file::write_atomic(path.as_std_path(), text.as_bytes()).map_err(|error| {
                CommandFailure::failed(error)
                    .context(format!("cannot write `{path}`"))
                    .hint("name another file with --out")
            })?;
            terminal::note(&format!("wrote {path}: {}", graph.tally()));
        }
        None => terminal::put(&text),
    }
    done()
}

fn format(global: &Global, args: &Asked) -> Result<GraphFormat, CommandFailure> {
    if global.json && args.format.is_some_and(|format| format != GraphFormat::Json) {
        return Err(CommandFailure::usage("`--json` and `--format` ask for different formats")
            .hint("leave one of them out"));
    }
    if let Some(format) = args.format {
        return Ok(format);
    }
    let ending = args.out.as_ref().and_then(|out| out.extension()).unwrap_or_default();
    let known = ENDINGS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
    let known = known.map(|(_, format)| *format);
    if global.json {
        return match known {
            Some(other) if other != GraphFormat::Json => Err(CommandFailure::usage(
                "`--json` and the name of `--out` ask for different formats",
            )
            .hint("leave one of them out, or add --format json")),
            Some(_) | None => Ok(GraphFormat::Json),
        };
    }
    let Some(out) = &args.out else { return Ok(GraphFormat::Text) };
    known.ok_or_else(|| {
        CommandFailure::usage(format!("the name `{out}` does not say which format to write"))
            .hint("add --format svg, mermaid, dot, json or text")
    })
}

/// Draws a plan file, after the same checks as at the start of a run.
fn of_plan(global: &Global, path: &Utf8Path) -> Result<GraphPicture, CommandFailure> {
    let bytes = file::read_capped(path.as_std_path(), PLAN_BYTES_MAX).map_err(|error| {
        CommandFailure::usage(error).hint("name a plan in JSON, such as .autopilot/plan/plan.json")
    })?;
    let plan: Plan = serde_json::from_slice(&bytes).map_err(|error| {
        CommandFailure::failed(error).context(format!("`{path}` is no plan")).hint(
            "a plan is the JSON that a planner returns; .autopilot/plan_schema.json describes it",
        )
    })?;
    let rules = PlanRules::of(&config(global)?, &TaskSpec::default(), BTreeMap::new());
    let checked = plan::check(&plan, &rules).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(|fault| format!("\n  {fault}")).collect();
        CommandFailure::failed(format!("`{path}` has faults:{}", faults.concat()))
            .hint("correct the plan, then draw it again")
    })?;
    for note in &checked.notes {
        terminal::note(note);
    }
    let summary = plan.plan_summary.lines().next().unwrap_or_default();
    Ok(GraphPicture::of_plan(&format!("plan {path}  {summary}"), &checked))
}

/// The repository's configuration, or the defaults if there is none.
fn config(global: &Global) -> Result<Config, CommandFailure> {
    if let Ok((place, _)) = place(global)
        && place.config().symlink_metadata().is_ok()
    {
        return Ok(workspace::read_config(&place)?.0);
    }
    work::usual_config()
}

fn drawn(graph: &GraphPicture, format: GraphFormat, args: &Asked) -> String {
    match format {
        GraphFormat::Text => {
            let extent = if args.all { GraphExtent::All } else { GraphExtent::Bounded };
            let (columns, paint) = surface(args.out.is_some());
            graph::text(graph, columns, paint, extent)
        }
        GraphFormat::Svg => graph::svg(graph),
        GraphFormat::Mermaid => fenced(graph::mermaid(graph), args.out.as_deref()),
        GraphFormat::Dot => graph::dot(graph),
        GraphFormat::Json => {
            let text = serde_json::to_string_pretty(&graph::json(graph));
            format!("{}\n", text.unwrap_or_else(|_| "null".to_owned()))
        }
    }
}

/// Wraps the chart in a code block if it goes to a Markdown file.
fn fenced(chart: String, out: Option<&Utf8Path>) -> String {
    match out.and_then(Utf8Path::extension) {
        Some("md") => format!("```mermaid\n{chart}```\n"),
        Some(_) | None => chart,
    }
}

fn surface(to_file: bool) -> (usize, Paint) {
    if to_file || !terminal::stdout_is_terminal() {
        return (COLUMNS_USUAL, Paint::Plain);
    }
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let paint = if terminal::stdout_has_color() { Paint::Ansi } else { Paint::Plain };
    (columns.filter(|columns| *columns > 0).unwrap_or(COLUMNS_USUAL), paint)
}

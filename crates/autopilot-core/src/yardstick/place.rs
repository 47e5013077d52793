//! Which files belong to the yardstick by their names and places.

use super::YardstickReason;
use crate::guard::is_test_path;
use crate::guard::path::is_fixture;
use crate::warmth::{DecisiveFile, decisive, fits};

/// What the place of a file says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlaceRule {
    Whole(YardstickReason),
    /// It is a test by its name alone; what declares it in the sources may say otherwise.
    ByName,
    /// It builds the product and decides how tests are built.
    Build,
    /// A manifest or build file: of its lines, those with words of tests decide a verdict.
    Lines,
    Product,
}

/// The rule for a path.
pub(super) fn place_rule(path: &str) -> PlaceRule {
    let name = path.rsplit('/').next().unwrap_or(path);
    let fits_any = |names: &[&str]| names.iter().any(|pattern| fits(path, pattern));
    if fits_any(BUILD_SERVERS) || path.starts_with(".github/workflows/") || in_directory(path, CI) {
        return PlaceRule::Whole(YardstickReason::BuildServer);
    }
    if fits_any(RUNNERS) {
        return PlaceRule::Whole(YardstickReason::RunnerConfig);
    }
    if is_fixture(path) && !(in_directory(path, &["snapshots"]) && is_source(name)) {
        return PlaceRule::Whole(YardstickReason::TestData);
    }
    if is_document(path) {
        return PlaceRule::Product;
    }
    if is_test_path(path) && !is_lookalike(path) {
        let by_place = is_test_path(&format!("{}/a", directories(path)));
        let is_rust = path.ends_with(".rs") && !by_place;
        return if is_rust { PlaceRule::ByName } else { PlaceRule::Whole(YardstickReason::Test) };
    }
    if is_helper(path) {
        return PlaceRule::Whole(YardstickReason::TestData);
    }
    if fits_any(BUILDS) {
        return PlaceRule::Build;
    }
    if fits_any(LINES) {
        return PlaceRule::Lines;
    }
    match decisive(path) {
        _ if fits_any(BUNDLERS) => PlaceRule::Product,
        Some(DecisiveFile::Runner) => PlaceRule::Whole(YardstickReason::RunnerConfig),
        Some(
            DecisiveFile::Manifest
            | DecisiveFile::LockFile
            | DecisiveFile::Toolchain
            | DecisiveFile::BuildScript
            | DecisiveFile::Repository,
        )
        | None => PlaceRule::Product,
    }
}

/// Settings of runners, linters and coverage, and files that start them, beside those that are known as
/// decisive for a build.
const RUNNERS: &[&str] = &[
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile*",
    "Rakefile",
    "noxfile.py",
    ".nycrc*",
    ".c8rc*",
    ".jestrc*",
    "jest.*.config.*",
    "jest-*.config.*",
    "jest.preset.*",
    "cypress.json",
    "protractor.conf.*",
    "wdio.conf.*",
    "nightwatch.conf.*",
    "codecept.conf.*",
    "testcafe.*",
    ".testcaferc.*",
    "web-test-runner.config.*",
    ".wallaby.js",
    "stryker.conf.*",
    "stryker.config.*",
    "tsconfig.test.json",
    "tsconfig.spec.json",
    "tsconfig.tests.json",
    ".simplecov",
    ".rubocop.yml",
    ".golangci.*",
    ".flake8",
    ".pylintrc",
    "pylintrc",
    "ruff.toml",
    ".ruff.toml",
    ".mypy.ini",
    "pyrightconfig.json",
    ".pre-commit-config.yaml",
    "biome.json*",
    ".stylelintrc*",
    ".prettierrc*",
    ".editorconfig-checker.json",
    "phpstan.neon*",
    "psalm.xml*",
    "phpcs.xml*",
    ".phpcs.xml*",
    "infection.json*",
    "behat.yml*",
    "codeception.yml",
    "rustfmt.toml",
    ".rustfmt.toml",
    "tarpaulin.toml",
    "deny.toml",
    ".config/nextest.toml",
    "insta.yaml",
    ".cucumber.*",
    "cucumber.*",
    "karma.*.js",
    ".shellcheckrc",
    ".yamllint*",
    ".env.test*",
    "requirements-test*.txt",
    "requirements-dev*.txt",
    "test-requirements*.txt",
    "dev-requirements*.txt",
    "requirements/test.txt",
    "requirements/dev.txt",
    "docker-compose.test*",
    "Dockerfile.test*",
    "checkstyle.xml",
    "detekt.yml",
    ".swiftlint.yml",
    ".credo.exs",
    ".formatter.exs",
    "test_helper.exs",
    ".luacheckrc",
    ".busted",
];

/// Runners in the list of decisive files that build the product too, and toolchains.
const BUILDS: &[&str] = &[
    "build.rs",
    "tsconfig*.json",
    "jsconfig.json",
    "babel.config.*",
    ".babelrc*",
    ".swcrc",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".nvmrc",
    ".node-version",
    ".python-version",
    ".ruby-version",
    ".java-version",
    ".go-version",
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    ".sdkmanrc",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    ".yarnrc*",
    ".pnpmfile.*",
    "*.mk",
    "*.mak",
    "wscript",
    "SConstruct",
    "SConscript",
    "Gruntfile.*",
    "gulpfile.*",
];

/// Files in the list of decisive ones that only build what is shipped.
const BUNDLERS: &[&str] =
    &["webpack.config.*", "rollup.config.*", "esbuild.config.*", "buf.yaml", "buf.gen.yaml"];

/// Build files that name tests among much else.
const LINES: &[&str] = &[
    "pom.xml",
    "build.gradle*",
    "settings.gradle*",
    "gradle.properties",
    "build.sbt",
    "Gemfile",
    "*.gemspec",
    "mix.exs",
    "CMakeLists.txt",
    "*.cmake",
    "meson.build",
    "*.csproj",
    "*.fsproj",
    "Directory.*.props",
    "Package.swift",
    "setup.py",
    "vite.config.*",
    "deno.json*",
    "go.mod",
    "go.work",
    "*.bazel",
    "BUILD",
    "*.cabal",
    "dune-project",
    "rebar.config",
    "configure.ac",
    "*.am",
    "nx.json",
    "turbo.json",
];

const BUILD_SERVERS: &[&str] = &[
    ".gitlab-ci.yml",
    ".travis.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "azure-pipelines*.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile*",
    ".drone.yml",
    ".woodpecker.yml",
    "codecov.yml",
    ".codecov.yml",
    ".cirrus.yml",
    "cloudbuild.yaml",
    ".coveralls.yml",
    "sonar-project.properties",
];
const CI: &[&str] = &[".circleci", ".buildkite", ".woodpecker", ".gitlab"];

/// Directories of helpers that only tests use.
const HELPER_DIRECTORIES: &[&str] = &[
    "__mocks__",
    "step_definitions",
    "test-helpers",
    "test-lib",
    "test-resources",
    "test-support",
    "test-utils",
    "test_helpers",
    "test_lib",
    "test_resources",
    "test_support",
    "test_util",
    "test_utils",
    "testhelper",
    "testhelpers",
    "testlib",
    "testsupport",
    "testutil",
    "testutils",
];
/// The names of helper files of tests, without signs between their words.
const HELPER_NAMES: &[&str] = &[
    "jestsetup",
    "railshelper",
    "setupjest",
    "setuptest",
    "setuptests",
    "setupvitest",
    "spechelper",
    "testbase",
    "testcommon",
    "testhelper",
    "testhelpers",
    "testingutils",
    "testlib",
    "testsetup",
    "testsupport",
    "testutil",
    "testutils",
    "vitestsetup",
];

fn is_helper(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, _) = name.rsplit_once('.').unwrap_or((name, ""));
    let plain: String = stem.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
    in_directory(path, HELPER_DIRECTORIES)
        || is_source(name) && HELPER_NAMES.contains(&plain.as_str())
}

fn directories(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directories, _)| directories)
}

fn in_directory(path: &str, names: &[&str]) -> bool {
    directories(path).split('/').any(|part| names.contains(&part.to_lowercase().as_str()))
}

/// The endings of program sources.
const SOURCES: &[&str] = &[
    "c", "cc", "cjs", "clj", "cpp", "cs", "cts", "cxx", "dart", "erl", "ex", "exs", "fs", "go",
    "groovy", "h", "hpp", "hs", "java", "jl", "js", "jsx", "kt", "kts", "lua", "m", "mjs", "ml",
    "mts", "php", "pl", "py", "rb", "rs", "scala", "sh", "svelte", "swift", "ts", "tsx", "vb",
    "vue", "zig",
];

fn is_source(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| SOURCES.contains(&ending))
}

/// Texts for people. What lies in a directory of tests is data unless its name says that it is read by
/// people.
pub(super) fn is_document(path: &str) -> bool {
    let lower = path.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_text = ["", "md", "markdown", "mdx", "rst", "adoc", "txt", "org"].contains(&ending);
    let for_people = [
        "readme",
        "changelog",
        "changes",
        "contributing",
        "license",
        "licence",
        "notice",
        "authors",
        "history",
        "copying",
        "notes",
        "todo",
    ];
    let top = lower.split('/').next().unwrap_or_default();
    is_text && ending != "txt" && (for_people.contains(&stem) || ["docs", "doc"].contains(&top))
        || is_text && for_people.contains(&stem)
        // Descriptions of what is to be built, of an interface or a feature.
        || in_directory(path, &["spec", "specs"])
            && !is_source(name)
            && !is_fixture(path)
            && ["md", "markdown", "rst", "adoc", "txt", "yaml", "yml", "json"].contains(&ending)
            && !in_directory(path, &["support", "test", "tests", "data", "__tests__"])
}

/// Sources of the product that are named or placed as tests are.
fn is_lookalike(path: &str) -> bool {
    // Java's and Swift's layouts keep tests outside of these directories.
    path.contains("src/main/") || path.starts_with("src/main/") || path.starts_with("Sources/")
}

// A reporter of node's test runner that writes how each test ends.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const file = path.join(path.dirname(here), 'results', `node-${process.pid}.events`);

function put(event) {
  try {
    fs.appendFileSync(file, JSON.stringify(event) + '\n');
  } catch {
    // Without a report only the exit code is known.
  }
}

const root = process.cwd();
const relative = (name) => (name ? path.relative(root, name) || name : '');

// Where only some tests are chosen, a file may have none of them.
const isChoosing = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((option) =>
  /--test-(name-pattern|skip-pattern|only)/.test(option),
);

// A file without tests of its own passes as one test. One that imports the runner should have some.
function hasTests(name) {
  try {
    return /(from|require\s*\(|import\s*\(?)\s*['"]node:test['"]/.test(fs.readFileSync(name, 'utf8'));
  } catch {
    return false;
  }
}

put({ began: relative(process.argv[1]) || 'node --test' });

export default async function* results(source) {
  const above = new Map();
  const missing = new Map();
  for await (const { type, data } of source) {
    const isFile = data?.nesting === 0 && data.file && path.resolve(root, data.name) === data.file;
    const key = data && `${data.file}:${data.line}:${data.column}:${data.nesting}:${data.name}`;
    if (type === 'test:enqueue' && !isFile) {
      missing.set(key, { file: data.file, name: data.name });
    } else if (type === 'test:start') {
      const names = above.get(data.file) ?? [];
      names.length = data.nesting;
      names.push(data.name);
      above.set(data.file, names);
    } else if (type === 'test:pass' || type === 'test:fail') {
      missing.delete(key);
      const isSuite = data.details?.type === 'suite';
      const names = (above.get(data.file) ?? []).slice(0, data.nesting);
      const id = isFile ? relative(data.file) : [relative(data.file), ...names, data.name].filter(Boolean).join(' > ');
      const isOff = data.skip !== undefined || data.todo !== undefined;
      const outcome = isOff ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
      if (isFile && outcome === 'passed' && !isChoosing && hasTests(data.file)) {
        put({ silent: id });
      } else if (isFile && outcome === 'failed') {
        put({ not_loaded: id });
      } else if (!isSuite || outcome === 'failed') {
        put({ ended: { id, outcome, ms: isSuite ? 0 : (data.details?.duration_ms ?? 0) } });
      }
    }
  }
  for (const { file: of, name } of missing.values()) {
    put({ silent: [relative(of), name].filter(Boolean).join(' > ') });
  }
  put('finished');
}

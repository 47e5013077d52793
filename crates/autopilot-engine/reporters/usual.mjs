// The reporter that node uses where none is named and nobody watches.
import * as reporters from 'node:test/reporters';

export default Number.parseInt(process.versions.node, 10) >= 23 ? reporters.spec : reporters.tap;

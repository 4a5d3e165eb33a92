// Builds the app into the folder given as the only argument: types from the schema, a check of
// them, one bundle. Every file is gzipped, as Kith embeds and serves it, and
// THIRD_PARTY_LICENSES.txt holds the licence of each package in the bundle. documents.json is not served:
// it has the operations by their hashes, which a gateway trusts.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { licences, write } from '../embed.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const outdir = resolve(process.argv[2]);

const { texts } = await import('./codegen.mjs');
execFileSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc')], { cwd: here, stdio: 'inherit' });
const modules = new Set();
const noted = { name: 'modules', generateBundle: (_, files) => Object.values(files).forEach(file => file.moduleIds?.forEach(id => modules.add(id))) };
const bundle = await build({
  root: here,
  logLevel: 'warn',
  build: { write: false },
  plugins: [noted],
  worker: { plugins: () => [noted] }, // the worker is a bundle of its own
});
for (const file of bundle.output) write(join(outdir, file.fileName), file.code ?? file.source);
write(join(outdir, 'THIRD_PARTY_LICENSES.txt'), licences('The app', modules));
write(join(outdir, 'documents.json'), JSON.stringify(Object.fromEntries(texts.map(text => [createHash('sha256').update(text).digest('hex'), text]))));

// Bundles GraphiQL and the three workers of its editor into the folder given as
// the only argument. Every file is gzipped (Kith embeds and serves it so), and
// THIRD_PARTY_LICENSES.txt holds the licence of each package that went in.
import { build } from 'esbuild';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { licences, write } from '../embed.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const outdir = resolve(process.argv[2]);

const common = {
  absWorkingDir: here,
  bundle: true,
  define: { 'process.env.NODE_ENV': '"production"' },
  legalComments: 'none', // the full licences lie beside the files
  logLevel: 'error',
  metafile: true,
  minify: true,
  outdir,
  target: 'es2022',
  write: false,
};

// Workers are classic scripts of one file each: they need no module loading.
const workers = await build({
  ...common,
  format: 'iife',
  entryPoints: {
    'editor.worker': 'monaco-editor/esm/vs/editor/editor.worker.js',
    'json.worker': 'monaco-editor/esm/vs/language/json/json.worker.js',
    'graphql.worker': 'monaco-graphql/esm/graphql.worker.js',
  },
});

// The page itself is split, so that it shows before the editor has loaded.
const page = await build({
  ...common,
  format: 'esm',
  splitting: true,
  chunkNames: 'chunk-[hash]',
  entryPoints: ['main.jsx'],
  jsx: 'automatic',
  plugins: [
    {
      // graphiql/style.css has Monaco's styles already, with the icon font inlined.
      name: 'styles-once',
      setup(b) {
        b.onLoad({ filter: /monaco-editor\/.*\.css$/ }, () => ({ contents: '', loader: 'css' }));
      },
    },
  ],
});

const inputs = Object.keys({ ...workers.metafile.inputs, ...page.metafile.inputs });
for (const file of [...workers.outputFiles, ...page.outputFiles]) write(file.path, file.contents);
write(join(outdir, 'THIRD_PARTY_LICENSES.txt'), licences('GraphiQL', inputs.map(path => join(here, path))));

// Writes the manifest that graphql-codegen's client preset makes of the documents here:
// node codegen.mjs SCHEMA OUT
import { readFileSync, writeFileSync } from 'node:fs';
import { codegen } from '@graphql-codegen/core';
import { preset } from '@graphql-codegen/client-preset';
import { buildSchema, parse } from 'graphql';

const [schemaFile, out] = process.argv.slice(2);
const sdl = readFileSync(schemaFile, 'utf8');
const documents = ['profile.graphql', 'follow.graphql'].map((location) => {
  const rawSDL = readFileSync(location, 'utf8');
  return { location, rawSDL, document: parse(rawSDL) };
});
const sections = await preset.buildGeneratesSection({
  baseOutputDir: 'gql/',
  schema: parse(sdl),
  schemaAst: buildSchema(sdl),
  documents,
  config: {},
  presetConfig: { persistedDocuments: true },
  plugins: [],
  pluginMap: {},
  pluginContext: {},
  profiler: { run: (f) => f(), collect: () => [] },
});
const section = sections.find((s) => s.filename.endsWith('persisted-documents.json'));
for (const one of sections) if (one !== section) await codegen(one); // which fill it
writeFileSync(out, await codegen(section));

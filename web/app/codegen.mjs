// Writes src/gql.ts: the types of the app's operations, and the operations themselves, from
// src/*.graphql and Kith's schema. The file is not committed: an operation that the schema does
// not answer fails the build. texts are the operations as the app sends them: the cache asks for __typename
// everywhere, and the client prints the result.
import { codegen } from '@graphql-codegen/core';
import * as documents from '@graphql-codegen/typed-document-node';
import * as operations from '@graphql-codegen/typescript-operations';
import { buildSchema, parse } from 'graphql';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatDocument, stringifyDocument } from 'urql';
import { transformWithOxc } from 'vite';

const here = dirname(fileURLToPath(import.meta.url));

// Where the schema is: in the repository, or where the build has put a copy.
const schemaFolder = process.env.KITH_SCHEMA ?? join(here, '../../graph/schema');

const sources = folder =>
  readdirSync(folder)
    .filter(name => /\.graphqls?$/.test(name))
    .sort()
    .map(name => ({ name, text: readFileSync(join(folder, name), 'utf8') }));

// The fields for routers of Federation are not for apps, and depend on types that routers define.
const schemaText = sources(schemaFolder)
  .filter(source => source.name !== 'federation.graphqls')
  .map(source => source.text)
  .join('\n')
  .replaceAll(/ *& *_Entity| *implements _Entity/g, '');
const schema = buildSchema(schemaText);

const text = await codegen({
  filename: 'gql.ts',
  schema: parse(schemaText),
  schemaAst: schema,
  documents: sources(join(here, 'src')).map(({ name, text }) => ({ location: name, document: parse(text) })),
  config: { useTypeImports: true, scalars: { ID: 'string', DateTime: 'string' }, skipTypename: true, dedupeFragments: true, enumType: 'string-literal' },
  plugins: [{ operations: {} }, { documents: {} }],
  pluginMap: { operations, documents },
});
writeFileSync(join(here, 'src/gql.ts'), text);

const { code } = await transformWithOxc(text, 'gql.ts');
const generated = await import(`data:text/javascript,${encodeURIComponent(code)}`);
export const texts = Object.entries(generated)
  .filter(([name]) => name.endsWith('Document'))
  .map(([, document]) => stringifyDocument(formatDocument(document)));

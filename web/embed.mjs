// What the builds of the pages have in common: files as Kith embeds them, and the licences of the
// packages that went into a bundle.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { constants, gzipSync } from 'node:zlib';

/** Writes a file gzipped, with .gz behind its name. */
export function write(path, contents) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.gz`, gzipSync(contents, { level: constants.Z_BEST_COMPRESSION }));
}

/** The licence texts of the packages that the files belong to, by name. */
export function licences(page, files) {
  const packages = new Map();
  for (const file of files) {
    const root = file.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/)?.[0];
    if (!root || !existsSync(join(root, 'package.json'))) continue;
    const { name, version, license } = JSON.parse(readFileSync(join(root, 'package.json')));
    packages.set(`${name} ${version}`, { root, license });
  }
  const sections = [...packages].sort().map(([title, { root, license }]) => {
    const texts = readdirSync(root)
      .filter(f => /^(licen[cs]e|notice|thirdpartynotices)/i.test(f))
      .filter(f => existsSync(join(root, f)))
      .map(f => readFileSync(join(root, f), 'utf8').trim());
    return `${'='.repeat(78)}\n${title} (${license})\n\n${texts.join('\n\n') || `Licence: ${license}`}\n`;
  });
  return `${page} as served by Kith contains these packages.\n\n${sections.join('\n')}`;
}

// Builds the page into dist/. Run by scripts/build-sites.mjs.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPage, buildWhole } from '@custody/site/build'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..')

/** @param dist the folder to make; @param stamp what is kept in it as `.inputs` */
export const build = (dist, stamp) =>
  buildWhole(dist, stamp, (outDir) => buildPage(folder, outDir, '/'))

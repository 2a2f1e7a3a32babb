// Removes unused files from node_modules, in the first build after each `npm ci` (scripts/build.mjs).
// Each line of UNREAD gives a reason, and a test ensures that none of it is imported. `npm ci`
// restores everything.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Paths below node_modules. */
const UNREAD = [
  // Node's headers and manual pages: the native addons use Node-API and contain its declarations.
  ['', /^node-(linux|darwin)-(x64|arm64)$/, ['include', 'share', 'CHANGELOG.md']],
  // CommonJS and browser builds: this project uses ES modules only, and its pages do not import
  // them.
  ['', /^ccxt$/, ['dist']],
  ['@stellar', /^stellar-sdk$/, ['dist']],
  ['', /^(tronweb|ethers)$/, ['dist']],
  // Its tests with their data.
  ['', /^bitcore-lib$/, ['test']],
]
/** Source maps for debuggers. Node reads them only with --enable-source-maps, which is not used. */
const SOURCE_MAP = /\.([cm]?[jt]s|css)\.map$/

const entries = (folder) => (existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [])

function removeSourceMaps(folder) {
  for (const each of entries(folder)) {
    const path = join(folder, each.name)
    // A link leads to a package of ours, or to a folder that is visited anyway.
    if (each.isDirectory()) {
      if (each.name !== '.cache') removeSourceMaps(path)
    } else if (each.isFile() && SOURCE_MAP.test(each.name)) rmSync(path)
  }
}

const modules = join(root, 'node_modules')
for (const [folder, name, parts] of UNREAD) {
  for (const each of entries(join(modules, folder)).filter(
    (one) => one.isDirectory() && name.test(one.name),
  )) {
    for (const part of parts)
      rmSync(join(modules, folder, each.name, part), { recursive: true, force: true })
  }
}
for (const folder of [
  modules,
  ...entries(join(root, 'packages')).map((each) =>
    join(root, 'packages', each.name, 'node_modules'),
  ),
])
  removeSourceMaps(folder)

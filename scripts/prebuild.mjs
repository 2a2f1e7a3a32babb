// Creates a package of the native addons for this platform.
//   node scripts/prebuild.mjs [--out DIR]
//
// Another checkout of the same Rust sources can install from it without Rust. The default folder is
// prebuilt/, which every checkout searches; another one is named by CUSTODY_PREBUILT, or installed
// as a package. Its package.json states its sources.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { describe, PREBUILT } from './native-prebuilt.mjs'
import { ADDONS, packageName, platformHere } from './native-sources.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)

const USAGE =
  'Usage: node scripts/prebuild.mjs [--out DIR]    makes DIR/threshold-OS-CPU-LIBC; DIR is prebuilt, where nothing is said'

function fail(text) {
  console.error(`${text}\n${USAGE}`)
  process.exit(2)
}

function parseOptions() {
  try {
    return parseArgs({ options: { out: { type: 'string', default: PREBUILT } } }).values
  } catch (error) {
    return fail(error.message)
  }
}

const { out } = parseOptions()
if (!out) fail('--out: the folder is missing')
const here = dirname(fileURLToPath(import.meta.url))
const platform = platformHere()
const name = packageName(platform)
const target = join(resolve(out), name.split('/')[1])
if (existsSync(target)) fail(`--out: ${target} is there already`)

// Built with cargo from these sources, because a prebuilt package must not be passed on as one's
// own.
const env = { ...process.env, CUSTODY_PREBUILT: '' }
const built = spawnSync(process.execPath, [join(here, 'build-native.mjs'), '--from-source'], {
  stdio: 'inherit',
  env,
})
if (built.status !== 0) process.exit(1)

const partial = `${target}.partial`
rmSync(partial, { recursive: true, force: true })
mkdirSync(partial, { recursive: true })
// Packages that are found without being named are rejected if other users can write to them. A
// named folder is left unchanged.
for (const folder of resolve(out) === PREBUILT ? [PREBUILT, partial] : [partial])
  chmodSync(folder, 0o755)
const addons = ADDONS.map((addon) => ({ addon, bytes: readFileSync(addon.file) }))
for (const { addon, bytes } of addons)
  writeFileSync(join(partial, `${addon.name}.node`), bytes, { mode: 0o644 })
const { version, license } = JSON.parse(readFileSync(join(here, '..', 'package.json'), 'utf8'))
const manifest = {
  name,
  version,
  license,
  description: 'Native addons of custody, built for one platform',
  os: [platform.os],
  cpu: [platform.cpu],
  ...(platform.libc === null ? {} : { libc: [platform.libc] }),
  files: ADDONS.map((addon) => `${addon.name}.node`),
  ...describe(addons),
}
writeFileSync(join(partial, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`, {
  mode: 0o644,
})
copyFileSync(join(here, '..', 'LICENSE'), join(partial, 'LICENSE'))
renameSync(partial, target)
console.log(`${name} ${version} in ${target}`)

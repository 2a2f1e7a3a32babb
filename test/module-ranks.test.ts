// Imports within a package go in one direction: each folder may import lower-ranked ones, and no
// two folders import each other.
import assert from 'node:assert/strict'
import { relative } from 'node:path'
import { test } from 'node:test'
import { importsIn } from '../testing/imports.ts'
import { outOfRank, type Rank } from '../testing/module-ranks.ts'
import { findSources, read } from '../testing/tree.ts'

/** Folders of each package's src and of each area of the platform, the lowest rank first. */
const RANKS: Record<string, readonly Rank[]> = {
  signer: [
    [
      'canonical.ts',
      'environment.ts',
      'errors.ts',
      'log.ts',
      'hardening.ts',
      'config.ts',
      'fingerprints.ts',
      'http.ts',
    ],
    'envelope.ts',
    'store',
    'transport',
    'kek',
    'intent',
    'sessions',
    'keys',
    'enrolment',
    'governance',
    'policy',
    'signing',
    'node-context.ts',
    'api',
    'operator',
    'node.ts',
    'run.ts',
    'main.ts',
    'set-up',
    ['setup.ts', 'setup-platform.ts'],
    'kek.ts',
    'tls.ts',
    'recover',
    'recover.ts',
  ],
  devnet: [
    [
      'errors.ts',
      'base58.ts',
      'read-write-lock.ts',
      'processes.ts',
      'examples.ts',
      'registry.ts',
      'timing.ts',
      'journal.ts',
      'http.ts',
      'public-key.ts',
      'ws.d.ts',
    ],
    ['amount.ts', 'whole-number.ts', 'faults.ts', 'producer.ts'],
    ['http-server.ts', 'ledger-chain.ts'],
    'local-chain.ts',
    'lazy-chain.ts',
    'ledger-local.ts',
    'evm',
    ['bitcoin', 'cardano', 'ethereum', 'solana', 'stellar', 'tron', 'xrp', 'aml', 'prices'],
    'venue',
    'contracts.ts',
    'control.ts',
    'devnet.ts',
    'run.ts',
    'main.ts',
  ],
  'key-encryption': [
    ['errors.ts', 'types.ts', 'crc32c.ts'],
    ['binding.ts', 'credential.ts', 'http.ts', 'settings.ts'],
    'providers',
    'open.ts',
    'key-file.ts',
    'index.ts',
  ],
  policy: [
    ['error.ts', 'limits.ts', 'registry.ts'],
    'amounts.ts',
    'document',
    ['act.ts', 'keys.ts'],
    'facts.ts',
    'evaluation',
    'statements',
    'sentences',
    'analysis',
    'governance',
    'index.ts',
  ],
  platform: ['core', 'custody', 'commerce', 'events', 'console-api', 'server', 'run.ts', 'main.ts'],
  'platform/core': [
    'bounds.ts',
    [
      'errors.ts',
      'environment.ts',
      'decimals.ts',
      'time-cursor.ts',
      'csv.ts',
      'metrics.ts',
      'data-dir.ts',
      'devnet.ts',
      'batch.ts',
      'load-monitor.ts',
      'ccxt.ts',
      'suggest-name.ts',
    ],
    'errors-explained.ts',
    'secrets.ts',
    'settings',
    'database',
    'ledger',
    'signing',
    'engine',
    'families',
    'http',
  ],
  'platform/custody': [
    'assets',
    'prices',
    'prepaid-fee',
    'addresses',
    'gas-tanks',
    'keys',
    'aml',
    'approvals',
    'fees',
    'staking',
    'deposits',
    ['coins', 'contract-payments', 'statements', 'wallets'],
    'transactions',
    'policies',
    'auto-forwarding',
  ],
  'platform/commerce': ['exchanges', 'trading', 'exchange-transfers', 'invoices', 'checkout'],
  'platform/events': ['events', 'webhooks'],
  'platform/console-api': ['people', 'console'],
  'platform/server': ['reference', 'audit', 'reserves', 'recovery', 'app', 'backup', 'operator'],
}

/** Returns every module below a folder with its imports. */
function importsBelow(src: string): Map<string, string[]> {
  return new Map(
    findSources(`${src}/**/*.ts`).map((path) => [
      relative(src, path),
      importsIn(read(path)).map(({ specifier }) => specifier),
    ]),
  )
}

test('detects imports of higher or equal ranks, type-only imports, and folders without a rank', () => {
  const ranks: Rank[] = ['base.ts', 'store', ['left', 'right'], 'main.ts']
  const offences = (path: string, specifier: string) =>
    outOfRank(
      ranks,
      new Map([
        ['base.ts', []],
        ['store/index.ts', []],
        ['left/a.ts', []],
        ['right/b.ts', []],
        ['main.ts', []],
        [path, [specifier]],
      ]),
    )
  for (const [path, specifier] of [
    ['main.ts', './left/a.ts'],
    ['left/a.ts', '../store/index.ts'],
    ['left/a.ts', './more.ts'],
    ['store/index.ts', '../base.ts'],
    ['base.ts', 'node:fs'],
    ['left/deep/a.ts', '../../base.ts'],
    ['left/deep/a.ts', '../a.ts'],
  ] as const)
    assert.deepEqual(offences(path, specifier), [], path)
  for (const [path, specifier] of [
    ['base.ts', './store/index.ts'],
    ['store/index.ts', '../left/a.ts'],
    ['left/a.ts', '../right/b.ts'],
    ['left/deep/a.ts', '../../main.ts'],
  ] as const)
    assert.deepEqual(offences(path, specifier), [`${path} imports ${specifier}`])
  assert.deepEqual(offences('attic/c.ts', '../base.ts'), ['attic has no rank'])
  assert.deepEqual(outOfRank(['cellar'], new Map()), ['cellar has a rank and is not there'])
  assert.deepEqual(
    importsIn("import type { A } from './a.ts'").map(({ specifier }) => specifier),
    ['./a.ts'],
  )
})

for (const [name, ranks] of Object.entries(RANKS)) {
  const [package_, area] = name.split('/')
  const src = `packages/${package_}/src${area === undefined ? '' : `/${area}`}`
  test(`modules of ${src} import only modules of lower ranks`, () => {
    assert.deepEqual(outOfRank(ranks, importsBelow(src)), [])
  })
}

test('each area of the platform has at most 15 ranks', () => {
  const areas = RANKS['platform']?.filter((rank) => !String(rank).endsWith('.ts'))
  for (const area of areas ?? []) {
    const ranks = RANKS[`platform/${area as string}`]
    assert.ok(ranks !== undefined && ranks.length <= 15, String(area))
  }
})

// Tests that the main networks, tokens and coins of data/registry.json are those that their
// projects publish, and that an entry that differs or has no published facts is reported.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry, readRegistryFile } from './index.ts'
import { factProblems } from '../testing/mainnet-facts.ts'

const registry = loadRegistry('mainnet')

test('main networks, tokens and coins are those that their projects publish', () => {
  const problems = factProblems(readRegistryFile())
  assert.ok(problems.length === 0, problems.join('\n'))
})

/** An entry of the registry that a test may change in any way. */
interface Line {
  [field: string]: unknown
  mainnet: { [field: string]: unknown; utxo: Record<string, unknown> }
  contract_address: Record<string, string>
  decimals: number
}
type Lines = Record<'networks' | 'assets' | 'coins', Line[]>

/** Returns the problems of a registry after a change. */
function problemsAfter(change: (find: (name: string) => Line, lines: Lines) => void): string[] {
  const lines = readRegistryFile() as unknown as Lines
  const find = (name: string) =>
    [...lines.networks, ...lines.assets, ...lines.coins].find((each) =>
      [each['code'], each['asset_name'], each['ticker']].includes(name),
    ) ?? assert.fail(name)
  change(find, lines)
  return factProblems(lines as never)
}

test('reports each false fact of a main network, whatever its family', () => {
  const GENESIS = 'ab'.repeat(32)
  const mistakes: [string, RegExp, (network: Line) => unknown][] = [
    [
      'BTC',
      /p2pkh_version is 1 .* 0 in .*facts/,
      ({ mainnet }) => (mainnet.utxo['p2pkh_version'] = 1),
    ],
    ['LTC', /p2sh_version is 5 .* coininfo/, ({ mainnet }) => (mainnet.utxo['p2sh_version'] = 5)],
    ['LTC', /bech32_hrp is "lct"/, ({ mainnet }) => (mainnet.utxo['bech32_hrp'] = 'lct')],
    ['DASH', /genesis is "abab/, ({ mainnet }) => (mainnet['genesis'] = GENESIS)],
    ['DOGE', /genesis is absent/, ({ mainnet }) => delete mainnet['genesis']],
    [
      'BCH',
      /cashaddr_prefix is "cash"/,
      ({ mainnet }) => (mainnet.utxo['cashaddr_prefix'] = 'cash'),
    ],
    ['BCH', /checkpoints is absent/, ({ mainnet }) => delete mainnet['checkpoints']],
    ['DOGE', /chain_index is 2 .* LTC; use the index of DOGE/, (line) => (line['chain_index'] = 2)],
    ['BASE', /chain_id is 8454 .* 8453 in .*viem/, ({ mainnet }) => (mainnet['chain_id'] = 8454)],
    ['BASE', /l1_fee_oracle is absent/, (line) => delete line['l1_fee_oracle']],
    ['POL', /chain_index is 966/, (line) => (line['chain_index'] = 966)],
    [
      'ETH',
      /explorer_transaction_url/,
      ({ mainnet }) => (mainnet['explorer_transaction_url'] = 'https://etherscan.example/tx/'),
    ],
    ['TRX', /genesis is "abab/, ({ mainnet }) => (mainnet['genesis'] = GENESIS)],
    ['XRP', /network_id is 1 /, ({ mainnet }) => (mainnet['network_id'] = 1)],
    ['XRP', /chain_index is 145/, (line) => (line['chain_index'] = 145)],
    ['XLM', /passphrase is "Test.*stellar-sdk/, ({ mainnet }) => (mainnet['passphrase'] = 'Test')],
    ['ADA', /network_id is 1 .*cardano-ser/, ({ mainnet }) => (mainnet['network_id'] = 1)],
    ['ADA', /slot_zero is 0 .* 1591566291/, ({ mainnet }) => (mainnet['slot_zero'] = 0)],
    ['SOL', /genesis is "abab/, ({ mainnet }) => (mainnet['genesis'] = GENESIS)],
  ]
  for (const [code, expected, change] of mistakes) {
    const problems = problemsAfter((find) => change(find(code)))
    assert.ok(
      problems.some((problem) => problem.startsWith(`${code}: `) && expected.test(problem)),
      `${code} ${String(expected)} is not in ${JSON.stringify(problems)}`,
    )
  }
  const families = new Set(
    mistakes.map(([code]) => registry.networks.find((each) => each.code === code)?.family),
  )
  assert.deepEqual(families, new Set(registry.networks.map(({ family }) => family)))
})

test('reports false decimals of each native coin', () => {
  for (const { code, native_asset } of registry.networks) {
    const problems = problemsAfter((_find, { assets }) => {
      const native = assets.find((each) => each['asset_name'] === native_asset)
      if (native) native.decimals += 1
    })
    assert.ok(
      problems.some((problem) => problem.startsWith(`${code}: decimals is`)),
      `${code} ${JSON.stringify(problems)}`,
    )
  }
})

test('reports a network, token or coin without published facts, and where to add them', () => {
  const added = (from: string, list: keyof Lines, change: (line: Line) => unknown) =>
    problemsAfter((find, lines) => {
      const line = structuredClone(find(from))
      change(line)
      lines[list].push(line)
    }).join('\n')
  const to = / in packages\/chains\/testing\/mainnet-facts\.ts: NEW: /
  for (const { code } of registry.networks) {
    const problems = added(code, 'networks', (line) => (line['code'] = 'NEW'))
    assert.match(problems, /^NEW: has no published facts; add to NETWORKS/m)
    assert.match(problems, to)
  }
  assert.match(
    added('BTC', 'networks', (line) => (line['code'] = 'NEW')),
    /NEW: \{ source, decimals, genesis, checkpoints, p2pkh_version, p2sh_version, bech32_hrp \}/,
  )
  const token = added('USDC_ETH', 'assets', (line) => (line['asset_name'] = 'NEW'))
  assert.match(token, /^NEW: has no published facts; add to TOKENS/m)
  assert.match(token, to)
  const coin = added('USDC', 'coins', (line) => (line['ticker'] = 'NEW'))
  assert.match(coin, /^NEW: has no published facts; add to COINGECKO_IDS/m)
  assert.match(coin, to)
})

test('reports a false contract, issuer, price id, and facts of a removed entry', () => {
  const token = problemsAfter((find) => {
    find('USDC_ETH').contract_address['mainnet'] = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
    find('USDC_BSC').decimals = 6
    find('USDT_POL')['bridged'] = false
    find('USDT_ETH')['issuer'] = 'Circle'
  })
  for (const name of ['USDC_ETH', 'USDC_BSC', 'USDT_POL', 'USDT_ETH'])
    assert.ok(
      token.some((problem) => problem.startsWith(`${name}: contract, decimals`)),
      name,
    )
  const coin = problemsAfter((_find, { coins }) => {
    for (const each of coins) if (each['ticker'] === 'ADA') each['coingecko_id'] = 'ada'
  })
  assert.match(coin.join(), /^ADA: coingecko_id is ada .* and cardano in/)
  const removed = problemsAfter((_find, { networks }) => {
    networks.splice(
      networks.findIndex((each) => each['code'] === 'SOL'),
      1,
    )
  })
  assert.match(removed.join('\n'), /^SOL: is not in .*; remove it from NETWORKS/m)
})

/**
 * Networks and tokens that are closed on main networks. Sources: Ankr's notice of Harmony's end,
 * Sonic Labs, Circle (Tron; Cronos), USDT0.
 */
test('on mainnet, Harmony is retired, and Fantom and three tokens are deprecated', () => {
  assert.deepEqual(
    registry.assets
      .filter(({ status }) => status !== 'active')
      .map(({ asset_name, status, status_since }) => [asset_name, status, status_since]),
    [
      ['FTM', 'deprecated', '2024-12-18'],
      ['ONE', 'retired', '2026-09-10'],
      ['USDT_OP_ETH', 'deprecated', '2026-11-26'],
      ['USDC_CRO', 'deprecated', '2026-06-22'],
      ['USDC_TRX', 'deprecated', '2024-02-21'],
    ],
  )
  const local = loadRegistry('local')
  assert.deepEqual(
    local.assets.filter(
      ({ status, status_since, status_reason }) =>
        status !== 'active' || status_since !== null || status_reason !== null,
    ),
    [],
  )
})

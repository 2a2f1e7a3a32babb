import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Fetch } from '@custody/chains'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { devnetControl } from '../app/local/local.ts'
import type { Values } from './cli/typed.ts'
import { OperatorError } from './command.ts'
import { probe } from './probe.ts'

/**
 * Tests of `custody probe` against the local chains, with all capabilities and with one capability
 * removed at a time.
 */
const home = mkdtempSync(join(tmpdir(), 'custody-probe-'))
const CLI = fileURLToPath(new URL('../../../bin/custody.mjs', import.meta.url))
const CLOCKS = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep: async () => undefined,
}
/** One network of each family, and networks that differ within their family. */
const CODES = [
  'BTC',
  'DASH',
  'DOGE',
  'BCH',
  'ETH',
  'OP_ETH',
  'ONE',
  'XRP',
  'XLM',
  'TRX',
  'SOL',
  'ADA',
] as const
const PAYEES: Record<string, string> = {
  BTC: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  ETH: `0x${'ab'.repeat(20)}`,
  XRP: 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59',
  TRX: 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
  SOL: '4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS',
  XLM: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
  ADA: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
}
let devnet: Devnet

interface Line {
  code: string
  state: string
  reason: string
  advice: string | null
}
interface Question {
  method: string
  params: unknown
  path: string
  url: string
  init: RequestInit
}
/** Returns the response that replaces the local chain's; undefined to use the chain's response. */
type Change = (
  question: Question,
  answer: () => Promise<Json>,
) => Promise<Response | Json | undefined> | Response | Json | undefined
// oxlint-disable-next-line typescript/no-explicit-any -- any endpoint's answer
type Json = any

const urlOf = (code: string): string => `${devnet.url}/${code.toLowerCase()}`

/** Queries the local chain, unless a change replaces the response. */
const changed =
  (code: string, change: Change, questions: Question[] = []): Fetch =>
  async (url, init) => {
    const body =
      typeof init.body === 'string' && init.body.startsWith('{')
        ? (JSON.parse(init.body) as { method?: string; params?: unknown })
        : {}
    const path = url.slice(urlOf(code).length)
    const question = {
      method: body.method ?? (path.replace(/^\//, '').split('?')[0] as string),
      params: body.params ?? body,
      path,
      url,
      init,
    }
    questions.push(question)
    const answer = await change(question, async () => (await fetch(url, init)).json())
    if (answer === undefined) return fetch(url, init)
    return answer instanceof Response ? answer : Response.json(answer)
  }

async function ask(
  code: string,
  change: Change = () => undefined,
  questions: Question[] = [],
  values: Values = {},
) {
  const { result, text, exitCode } = await probe(
    { network: code, url: urlOf(code), values },
    changed(code, change, questions),
    CLOCKS,
  )
  return {
    ...(result as { ok: boolean; verdict: string; checks: Line[]; questions: number }),
    text: (text as string[]).join('\n'),
    exitCode,
  }
}

const refused = (code: number, message: string) => ({
  jsonrpc: '2.0',
  id: 1,
  error: { code, message },
})
const NOT_FOUND = refused(-32601, 'Method not found')
/** Changes the responses of one method. */
const on =
  (method: string, answer: (params: Json, whole: () => Promise<Json>) => Json): Change =>
  (question, whole) =>
    question.method === method ? answer(question.params, whole) : undefined

const whole: Record<string, Line[]> = {}

before(async () => {
  devnet = await Devnet.start(home, 0, { manual: true })
  const control = devnetControl(devnet.url)
  for (const code of CODES) {
    await devnet.chains.find((chain) => chain.code === code)?.start()
    const payee = PAYEES[code]
    await control({ command: 'mine', network: code, blocks: 3 })
    if (payee !== undefined)
      await control({ command: 'fund', asset: code, address: payee, amount: '50' })
  }
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

test('the probe passes on the local chains of all families, and submits no valid transaction', async () => {
  const submitted = new Set<string>()
  for (const code of CODES) {
    const queries: Question[] = []
    const { checks, text, exitCode, questions, ok } = await ask(code, () => undefined, queries)
    whole[code] = checks
    // Dogecoin's nodes return no fee estimate without traffic, so the floors of the registry are
    // the rates.
    const bad = checks.filter(
      ({ state, code: of }) => state !== 'ok' && !(code === 'DOGE' && of === 'fee_rates'),
    )
    assert.deepEqual(bad, [], code)
    assert.deepEqual([exitCode, ok, questions], [0, true, queries.length], text)
    assert.match(text, new RegExp(`^${code}: usable.*; ${queries.length} requests sent$`, 'm'))
    assert.ok(questions < 60, `${code}: ${questions} questions`)
    for (const { method, params, init } of queries) {
      if (/send|submit|broadcast/i.test(method))
        submitted.add(
          init.body instanceof Uint8Array
            ? Buffer.from(init.body).toString('hex')
            : JSON.stringify(params),
        )
    }
  }
  assert.deepEqual([...submitted].map((each) => each.replace(/,\{.*/, ']')).sort(), [
    '00',
    '["00"]',
    '["0xc0"]',
    '["AA=="]',
    '[{"tx_blob":"00","api_version":1}]',
    '{"transaction":"00"}',
    '{"transaction":"AAAA"}',
  ])
})

/** Returns the method names in the sources of a family's client. */
function methodsOf(files: string[], pattern: RegExp): string[] {
  const text = files
    .map((file) => readFileSync(new URL(`../../../../chains/src/${file}`, import.meta.url), 'utf8'))
    .join('\n')
  return [...new Set([...text.matchAll(pattern)].map((match) => match[1] as string))].sort()
}

test('the probe tests each RPC method that a chain family’s client uses', async () => {
  const families: [string[], string[], number][] = [
    [['BTC', 'BCH'], methodsOf(['utxo/rpc.ts'], /'((?:get|estimate|send)[a-z]+)'/g), 10],
    [
      ['ETH', 'ONE'],
      methodsOf(
        ['evm/rpc.ts', 'evm/block-reader.ts', 'evm/fee-rates.ts', 'evm/logs.ts'],
        /'(eth_\w+)'/g,
      ),
      14,
    ],
    [
      ['XRP'],
      methodsOf(
        ['xrp/rpc.ts'],
        /#(?:call|unless)(?:<\w+>)?\(\s*(?:'(?:lgr|txn|act)NotFound', )?'(\w+)'/g,
      ),
      7,
    ],
    [['XLM'], methodsOf(['stellar/rpc.ts'], /'((?:get|send)[A-Z]\w+)'/g), 8],
    [
      ['TRX'],
      methodsOf(['tron/rpc.ts', 'tron/block-reader.ts'], /'(wallet(?:solidity)?\/\w+)'/g),
      17,
    ],
    [['SOL'], methodsOf(['solana/rpc.ts', 'solana/history.ts'], /'((?:get|send)[A-Z]\w+)'/g), 14],
    [
      ['ADA'],
      methodsOf(['cardano/rpc.ts'], /[(`']\/([a-z]+(?:\/(?:latest|parameters|submit))*)[/`'$]/g),
      6,
    ],
  ]
  for (const [codes, methods, least] of families) {
    const questions: Question[] = []
    for (const code of codes) await ask(code, () => undefined, questions)
    const names = new Set(questions.map(({ method }) => method))
    const isAsked = (method: string) =>
      names.has(method) ||
      (codes[0] === 'ADA' && [...names].some((name) => name.startsWith(`${method}/`)))
    assert.ok(methods.length >= least, `${codes.join()}: ${methods.join()}`)
    assert.deepEqual(
      methods.filter((method) => !isAsked(method)),
      [],
      `${codes.join()} asks ${[...names].join()}`,
    )
  }
})

const isOld = (height: number, head: number) => height < head - 2
const headOf = (code: string) =>
  Number(/\d+/.exec(whole[code]?.find((line) => line.code === 'head')?.reason ?? '')?.[0])

interface Case {
  name: string
  code: string
  change: () => Change
  expected: Record<string, string>
  says: RegExp
  exit: number
  gone?: string[]
}
const GONE_404: Change = ({ method }) =>
  method.startsWith('walletsolidity/')
    ? new Response('404 page not found', { status: 404 })
    : undefined
const without =
  (method: string): (() => Change) =>
  () =>
    on(method, () => NOT_FOUND)
const withResult =
  (method: string, edit: (result: Json, params: Json) => Json): (() => Change) =>
  () =>
    on(method, async (params, answer) => {
      const response = (await answer()) as { result: Json }
      return { ...response, result: edit(response.result, params) }
    })

const CASES: Case[] = [
  {
    name: 'blocks without logsBloom',
    code: 'ETH',
    change: withResult('eth_getBlockByNumber', (block) => ({ ...block, logsBloom: undefined })),
    expected: { logs_bloom: 'limited' },
    says: /returns no logsBloom/,
    exit: 0,
  },
  {
    name: 'no eth_getBlockReceipts',
    code: 'ETH',
    change: without('eth_getBlockReceipts'),
    expected: { receipts_together: 'limited' },
    says: /eth_getBlockReceipts is not served/,
    exit: 0,
  },
  {
    name: 'eth_getBlockReceipts is refused in a way that the client does not do without',
    code: 'ETH',
    change: () => on('eth_getBlockReceipts', () => refused(-32000, 'upgrade your plan')),
    expected: { receipts_together: 'missing' },
    says: /eth_getBlockReceipts: upgrade your plan/,
    exit: 1,
  },
  {
    name: 'receipts without effectiveGasPrice',
    code: 'ETH',
    change: withResult(
      'eth_getTransactionReceipt',
      (receipt) => receipt && { ...receipt, effectiveGasPrice: null },
    ),
    expected: { effective_gas_price: 'limited' },
    says: /no effectiveGasPrice/,
    exit: 0,
  },
  {
    name: 'the tag finalized is refused',
    code: 'ETH',
    change: () =>
      on('eth_getBlockByNumber', ([tag]) =>
        tag === 'finalized' ? refused(-32602, 'invalid block number') : undefined,
      ),
    expected: { final: 'missing' },
    says: /the tag finalized: invalid block number/,
    exit: 1,
  },
  {
    name: 'ranges of logs are refused',
    code: 'ETH',
    change: () =>
      on('eth_getLogs', ([{ fromBlock }]) =>
        fromBlock ? refused(-32000, 'block range is too wide') : undefined,
      ),
    expected: { logs_by_range: 'limited' },
    says: /eth_getLogs by range: block range is too wide/,
    exit: 0,
  },
  {
    name: 'logs by hash are refused',
    code: 'ETH',
    change: () =>
      on('eth_getLogs', ([{ blockHash }]) =>
        blockHash ? refused(-32602, 'blockHash is not supported') : undefined,
      ),
    expected: { logs_by_hash: 'missing', history: 'missing', scan: 'missing' },
    says: /eth_getLogs by blockHash: blockHash is not supported/,
    exit: 1,
  },
  {
    name: 'pruned EVM blocks',
    code: 'ETH',
    change: () =>
      on('eth_getBlockByNumber', ([tag]) =>
        isOld(Number(tag), headOf('ETH')) ? { jsonrpc: '2.0', id: 1, result: null } : undefined,
      ),
    expected: { history: 'missing' },
    says: /reaches back only \d+ minutes/,
    exit: 1,
  },
  {
    name: 'pruned EVM receipts',
    code: 'ETH',
    change: () =>
      on('eth_getLogs', ([{ blockHash }]) =>
        blockHash && blockHash !== latestHash
          ? refused(-32000, 'pruned history unavailable')
          : undefined,
      ),
    expected: { history: 'missing' },
    says: /reaches back only/,
    exit: 1,
  },
  {
    name: 'no broadcast',
    code: 'ETH',
    change: without('eth_sendRawTransaction'),
    expected: { broadcast: 'missing' },
    says: /eth_sendRawTransaction is not served/,
    exit: 1,
  },
  {
    name: 'a broadcast that accepts anything',
    code: 'ETH',
    change: () => on('eth_sendRawTransaction', () => ({ jsonrpc: '2.0', id: 1, result: '0x' })),
    expected: { broadcast: 'missing' },
    says: /accepts a malformed transaction/,
    exit: 1,
  },
  {
    name: 'no fee history',
    code: 'ETH',
    change: without('eth_feeHistory'),
    expected: { fee_history: 'limited' },
    says: /eth_feeHistory is not served/,
    exit: 0,
  },
  {
    name: 'estimates that a plan forbids',
    code: 'ETH',
    change: () =>
      on('eth_estimateGas', () =>
        Response.json(refused(-32000, 'upgrade your plan'), { status: 403 }),
      ),
    expected: { estimate_gas: 'missing' },
    says: /eth_estimateGas: the endpoint forbids it \(HTTP 403\)/,
    exit: 1,
  },
  {
    name: 'a method that must be paid',
    code: 'ETH',
    change: () => on('eth_getTransactionCount', () => Response.json({}, { status: 402 })),
    expected: { nonce: 'missing' },
    says: /requires payment \(HTTP 402\)/,
    exit: 1,
  },
  {
    name: 'a method that is always rate limited',
    code: 'ETH',
    change: () => on('eth_getBalance', () => Response.json({}, { status: 429 })),
    expected: { balance: 'missing', rate_limit: 'limited' },
    says: /eth_getBalance: the endpoint limits requests \(HTTP 429\)/,
    exit: 1,
  },
  {
    name: 'no fee oracle of a roll-up',
    code: 'OP_ETH',
    change: () =>
      on('eth_call', ([{ to }]) =>
        to.startsWith('0x42') ? refused(3, 'execution reverted') : undefined,
      ),
    expected: { l1_fee: 'missing' },
    says: /getL1Fee: execution reverted/,
    exit: 1,
  },
  {
    name: 'no transaction index',
    code: 'BTC',
    change: () =>
      on('getrawtransaction', () => refused(-5, 'No such mempool transaction. Use -txindex')),
    expected: { transaction_index: 'missing' },
    gone: ['raw_transaction'],
    says: /has no transaction index\. What to do: set txindex=1/,
    exit: 1,
  },
  {
    name: 'a pruned UTXO node',
    code: 'BTC',
    change: () =>
      on('getblock', ([hash]) =>
        hash !== bestHash ? refused(-1, 'Block not available (pruned data)') : undefined,
      ),
    expected: { transaction_index: 'missing', history: 'missing' },
    gone: ['raw_transaction'],
    says: /the history \(getblock\) reaches back only/,
    exit: 1,
  },
  {
    name: 'no mempool',
    code: 'BTC',
    change: without('getrawmempool'),
    expected: { mempool: 'limited' },
    says: /getrawmempool is not served/,
    exit: 0,
  },
  {
    name: 'no fee estimate',
    code: 'BTC',
    change: withResult('estimatesmartfee', () => ({ errors: ['Insufficient data'], blocks: 2 })),
    expected: { fee_rates: 'limited' },
    says: /the node has no estimate of fee rates now/,
    exit: 0,
  },
  {
    name: 'no fee estimates at all',
    code: 'BTC',
    change:
      () =>
      ({ method }) =>
        method.startsWith('estimate') ? NOT_FOUND : undefined,
    expected: { fee_estimate: 'missing' },
    gone: ['fee_rates'],
    says: /estimatesmartfee or estimatefee is not served/,
    exit: 1,
  },
  {
    name: 'blocks without chainlock',
    code: 'DASH',
    change: withResult('getblock', (block) => ({ ...block, chainlock: undefined })),
    expected: { chainlock: 'limited' },
    says: /final after 12 confirmations, not after 2/,
    exit: 0,
  },
  {
    name: 'a history that was not searched',
    code: 'XRP',
    change: withResult('tx', (result) => ({ ...result, searched_all: false })),
    expected: { transaction: 'missing' },
    says: /tx has not searched all ledgers/,
    exit: 1,
  },
  {
    name: 'no account_tx',
    code: 'XRP',
    change: withResult('account_tx', () => ({
      status: 'error',
      error: 'unknownCmd',
      error_code: 32,
      error_message: 'Unknown method.',
    })),
    expected: { account_history: 'missing' },
    says: /account_tx is not served/,
    exit: 1,
  },
  {
    name: 'missing ledgers',
    code: 'XRP',
    change: withResult('ledger', (result, [{ ledger_index: index }]) =>
      isOld(index, headOf('XRP'))
        ? { status: 'error', error: 'lgrNotFound', error_code: 21 }
        : result,
    ),
    expected: { history: 'missing' },
    says: /the history \(ledger\) reaches back only/,
    exit: 1,
  },
  {
    name: 'a short retention window',
    code: 'XLM',
    change:
      () =>
      ({ method, params }, answer) =>
        method === 'getTransaction'
          ? answer().then(({ result, ...rest }) => ({
              ...rest,
              result: {
                ...result,
                oldestLedgerCloseTime: String(Number(result.latestLedgerCloseTime) - 100),
              },
            }))
          : method === 'getLedgers' &&
              isOld((params as { startLedger: number }).startLedger, headOf('XLM'))
            ? refused(-32600, 'startLedger must be between')
            : undefined,
    expected: { transaction: 'missing', history: 'missing' },
    says: /getTransaction retains 100 s, and a transfer lives/,
    exit: 1,
  },
  {
    name: 'no getFeeStats',
    code: 'XLM',
    change: without('getFeeStats'),
    expected: { fee_rates: 'missing' },
    says: /getFeeStats is not served/,
    exit: 1,
  },
  {
    name: 'no /walletsolidity',
    code: 'TRX',
    change: () => GONE_404,
    expected: {
      final: 'missing',
      final_transaction: 'missing',
      final_transaction_body: 'missing',
      final_account: 'missing',
    },
    says: /walletsolidity\/getnowblock is not served/,
    exit: 1,
  },
  {
    name: 'no constant calls',
    code: 'TRX',
    change: () =>
      on('wallet/triggerconstantcontract', () => ({
        result: {
          code: 'CONTRACT_VALIDATE_ERROR',
          message: Buffer.from('this node does not support constant').toString('hex'),
        },
      })),
    expected: { constant_call: 'missing' },
    says: /this node does not support constant.*vm\.supportConstant/,
    exit: 1,
  },
  {
    name: 'no staking',
    code: 'TRX',
    change: () =>
      on('wallet/getcandelegatedmaxsize', () => new Response('<html>', { status: 405 })),
    expected: { stake_lendable: 'limited' },
    says: /gas tanks cannot stake/,
    exit: 0,
  },
  {
    name: 'no transaction history',
    code: 'SOL',
    change: () =>
      on('getSignaturesForAddress', () =>
        refused(-32011, 'Transaction history is not available from this node'),
      ),
    expected: { account_history: 'missing' },
    says: /Transaction history is not available.*--enable-rpc-transaction-history/,
    exit: 1,
  },
  {
    name: 'no submission',
    code: 'ADA',
    change:
      () =>
      ({ method }) =>
        method === 'tx/submit'
          ? Response.json(
              {
                status_code: 404,
                error: 'Not Found',
                message: 'The requested component has not been found.',
              },
              { status: 404 },
            )
          : undefined,
    expected: { broadcast: 'missing' },
    says: /\/tx\/submit is not served/,
    exit: 1,
  },
  {
    name: 'an endpoint of one’s own without /mempool',
    code: 'ADA',
    change:
      () =>
      ({ method }) =>
        method.startsWith('mempool/')
          ? Response.json(
              { status_code: 400, error: 'Bad Request', message: 'Invalid path.' },
              { status: 400 },
            )
          : undefined,
    expected: { mempool: 'limited' },
    says: /\/mempool is not served/,
    exit: 0,
  },
  {
    name: 'transactions without cbor',
    code: 'ADA',
    change:
      () =>
      ({ method }, answer) =>
        method.endsWith('/txs/cbor')
          ? answer().then((all) => all.map((each: Json) => ({ ...each, cbor: '' })))
          : undefined,
    expected: { scan: 'missing', transaction_bytes: 'missing' },
    gone: ['transaction', 'transaction_outputs', 'transaction_body', 'mempool'],
    says: /returns no cbor.*tx_cbor/,
    exit: 1,
  },
]
let latestHash = ''
let bestHash = ''

test('the probe reports each missing capability in its own line only', async (t) => {
  const rpc = async (code: string, method: string, params: unknown[]) =>
    (
      (await (
        await fetch(urlOf(code), {
          method: 'POST',
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
        })
      ).json()) as { result: Json }
    ).result
  latestHash = (await rpc('ETH', 'eth_getBlockByNumber', ['latest', false])).hash
  bestHash = await rpc('BTC', 'getbestblockhash', [])
  for (const { name, code, change, expected, says, exit, gone = [] } of CASES) {
    await t.test(name, async () => {
      const { checks, text, exitCode, verdict } = await ask(code, change())
      const before = new Map((whole[code] as Line[]).map((line) => [line.code, line.state]))
      const different = Object.fromEntries(
        checks
          .filter((line) => before.get(line.code) !== line.state)
          .map((line) => [line.code, line.state]),
      )
      assert.deepEqual(different, expected, text)
      assert.deepEqual(
        [...before.keys()].filter((each) => !checks.some((line) => line.code === each)),
        gone,
        text,
      )
      assert.match(text, says)
      assert.deepEqual(
        [exitCode, verdict],
        [exit, exit === 0 ? 'usable with limits' : 'not usable'],
        text,
      )
      for (const line of checks) assert.equal(line.advice === null, line.state === 'ok', line.code)
    })
  }
})

test('Solana: the probe reports transaction versions that the endpoint does not support', async () => {
  const { checks, text, exitCode } = await ask(
    'SOL',
    on('getBlock', () =>
      refused(-32015, 'Transaction version (1) is not supported by the requesting client'),
    ),
  )
  assert.deepEqual(
    checks.filter(({ state }) => state !== 'ok').map(({ code }) => code),
    ['scan'],
  )
  assert.match(
    text,
    /missing {2}scan +getBlock: Transaction version \(1\) is not supported.*\nSOL: not usable: .*; the remaining checks were skipped; \d+ requests sent$/m,
  )
  assert.equal(exitCode, 1)
})

test('the probe repeats a rate-limited query once, and reports the rate limit', async () => {
  let left = 2
  const { checks, exitCode, text } = await ask('ETH', () =>
    left-- > 0 ? Response.json({ error: 'slow down' }, { status: 429 }) : undefined,
  )
  assert.deepEqual(
    checks.filter(({ state }) => state !== 'ok').map(({ code, state }) => `${code} ${state}`),
    ['rate_limit limited'],
  )
  assert.match(text, /2 of \d+ requests were rejected by a rate limit \(HTTP 429\)/)
  assert.equal(exitCode, 0)
})

test('the probe reports an endpoint of another network, and sends no further queries', async () => {
  const questions: Question[] = []
  const at = (network: string, code: string) =>
    probe(
      { network, url: urlOf(code), values: {} },
      changed(code, () => undefined, questions),
      CLOCKS,
    )
  const { result, text, exitCode } = await at('ETH', 'OP_ETH')
  const { checks, verdict } = result as { checks: Line[]; verdict: string }
  assert.deepEqual(
    [checks.map(({ code, state }) => `${code} ${state}`), verdict, exitCode],
    [['network missing'], 'wrong network', 1],
  )
  assert.match(
    (text as string[]).join('\n'),
    /ETH: the endpoint serves chain id 31337010, not 31337: it serves OP Mainnet \(OP_ETH\)/,
  )
  assert.deepEqual(new Set(questions.map(({ method }) => method)), new Set(['eth_chainId']))
  assert.match(((await at('BTC', 'DASH')).text as string[]).join('\n'), /it serves Dash \(DASH\)/)
  const real = await ask(
    'ETH',
    on('eth_chainId', () => ({ jsonrpc: '2.0', id: 1, result: '0x1' })),
  )
  assert.match(
    real.text,
    /it serves Ethereum \(ETH of mainnet\)\. What to do: set CUSTODY_NETWORK=mainnet/,
  )
})

const KEY = 'k3y-0f-the-pr0vider'
/** Starts a server that returns the same response to every request. */
async function serving(answer: {
  status: number
  body: string
  headers?: Record<string, string>
}): Promise<{ server: Server; url: string; seen: IncomingHttpHeaders[] }> {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers)
    response.writeHead(answer.status, answer.headers).end(answer.body)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    server,
    seen,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2/${KEY}`,
  }
}

async function refusal(network: string, url: string, values: Values = {}): Promise<string> {
  try {
    await probe({ network, url, values }, fetch, CLOCKS)
  } catch (error) {
    assert.ok(error instanceof OperatorError, String(error))
    assert.ok(!error.message.includes(KEY), error.message)
    return error.message
  }
  return assert.fail(`${url} was probed`)
}

test('the probe reports wrong arguments in one sentence, without the URL', async () => {
  assert.match(
    await refusal('ETHX', 'https://node.example'),
    /^NETWORK: network ETHX does not exist \(CUSTODY_NETWORK=local\)\none of BTC, /,
  )
  assert.match(await refusal('USDT_ETH', 'https://node.example'), /did you mean ETH\?/)
  assert.match(await refusal('eth', 'https://node.example'), /did you mean ETH\?/)
  assert.match(await refusal('ETH', KEY), /^URL: must be an http\(s\) URL/)
  assert.match(
    await refusal('ETH', `ftp://node.example/${KEY}`),
    /^URL: must begin with http:\/\/ or https:\/\/, not ftp:$/,
  )
  assert.match(
    await refusal('ETH', `wss://node.example/${KEY}`),
    /^URL: is a WebSocket URL: use the http\(s\) URL/,
  )
  assert.match(
    await refusal('ETH', `https://user:${KEY}@127.0.0.1`),
    /^URL: must not contain a user name or password/,
  )
  assert.match(
    await refusal('ETH', 'https://node.example', { 'password-file': 'x' }),
    /^--password-file: requires --username$/,
  )
  assert.match(
    await refusal('ETH', 'https://node.example', {
      username: 'u',
      'password-file': join(home, 'none'),
    }),
    /^--password-file: the file/,
  )
  assert.match(
    await refusal('ETH', 'https://node.example', { header: 'no colon' }),
    /^--header: must be NAME:VALUE/,
  )
})

test('the probe describes what an endpoint that is not a node returns', async () => {
  const closed = await serving({ status: 200, body: '' })
  await new Promise((resolve) => {
    closed.server.close(resolve)
  })
  assert.match(
    await refusal('ETH', closed.url),
    /^127\.0\.0\.1:\d+: no process listens there: check the port/,
  )
  const answers: [Parameters<typeof serving>[0], RegExp][] = [
    [
      { status: 200, body: '<!DOCTYPE html><title>Welcome</title>' },
      /^127\.0\.0\.1:\d+: the endpoint returns a web page \(HTTP 200\)/,
    ],
    [
      { status: 401, body: `{"message":"bad key ${KEY}"}` },
      /the endpoint rejects the credentials \(HTTP 401\); check --username/,
    ],
    [{ status: 402, body: '{}' }, /requires payment \(HTTP 402\)/],
    [{ status: 429, body: '{}' }, /limits requests \(HTTP 429\): wait/],
    [
      { status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } },
      /the endpoint redirects: use the target URL$/,
    ],
    [{ status: 502, body: 'bad gateway' }, /the response is not JSON \(HTTP 502\)$/],
    [
      { status: 200, body: `{"error":{"code":-32601,"message":"${KEY} may not call this"}}` },
      /rejects the first request of Ethereum \(… may not call this\)/,
    ],
  ]
  for (const [answer, expected] of answers) {
    const { server, url } = await serving(answer)
    try {
      assert.match(await refusal('ETH', url), expected)
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    }
  }
})

test('the probe command sends headers and password, prints a table or JSON, and exits 0 or 1', async (t) => {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers)
    const parts: Buffer[] = []
    request
      .on('data', (part: Buffer) => parts.push(part))
      .on('end', async () => {
        const body = Buffer.concat(parts).toString()
        if (body.includes('"fromBlock"'))
          return response.end(
            JSON.stringify(refused(-32000, `${KEY} s3cret-h3ader p4ssw0rd must upgrade`)),
          )
        response.end(await (await fetch(urlOf('ETH'), { method: 'POST', body })).text())
      })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${KEY}`
  writeFileSync(join(home, 'password'), 'p4ssw0rd\n')
  writeFileSync(join(home, 'header'), 's3cret-h3ader\n')
  const run = (...words: string[]) =>
    new Promise<{ status: number | null; out: string; err: string }>((resolve) => {
      const child = spawn(process.execPath, [CLI, 'probe', ...words], {
        env: { PATH: process.env['PATH'] ?? '', CUSTODY_HOME: join(home, 'nowhere') },
      })
      let [out, err] = ['', '']
      child.stdout.on('data', (text: Buffer) => {
        out += text.toString()
      })
      child.stderr.on('data', (text: Buffer) => {
        err += text.toString()
      })
      child.on('close', (status) => resolve({ status, out, err }))
    })
  const secrets = [
    '--username',
    'reader',
    '--password-file',
    join(home, 'password'),
    '--header',
    'X-One: 1',
    '--header',
    `X-Key:@${join(home, 'header')}`,
  ]
  const table = await run('ETH', url, ...secrets)
  assert.deepEqual([table.status, table.err], [0, ''], table.out)
  assert.match(table.out, /^ETH at 127\.0\.0\.1:\d+\nok +network +the endpoint serves Ethereum\n/)
  assert.match(table.out, /^limited +logs_by_range +eth_getLogs by range: … … … must upgrade: /m)
  assert.match(table.out, /\nETH: usable with the limits above; \d+ requests sent\n$/)
  assert.doesNotMatch(table.out, new RegExp(`${KEY}|s3cret|p4ssw0rd`))
  const [first] = seen
  assert.deepEqual(
    [first?.['x-one'], first?.['x-key'], first?.authorization],
    ['1', 's3cret-h3ader', `Basic ${Buffer.from('reader:p4ssw0rd').toString('base64')}`],
  )
  const object = JSON.parse((await run('ETH', url, '--json')).out) as {
    ok: boolean
    verdict: string
    checks: Line[]
  }
  assert.deepEqual(
    [object.ok, object.verdict, object.checks[0]?.code],
    [true, 'usable with limits', 'network'],
  )
  const wrong = await run('BTC', url)
  assert.deepEqual([wrong.status, wrong.out], [1, ''])
  assert.match(
    wrong.err,
    /^custody: 127\.0\.0\.1:\d+: the endpoint rejects the first request of Bitcoin \(/,
  )
  assert.match(
    (await run('ETH')).err,
    /^custody: missing required argument 'URL'\nUsage: npx custody probe <NETWORK> <URL> \[options\]\n$/,
  )
})

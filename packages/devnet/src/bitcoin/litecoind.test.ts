import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { after, before, test } from 'node:test'
import { payments, Transaction } from 'bitcoinjs-lib'
import { freePorts } from '../../../../testing/free-ports.ts'
import { nodeForTests } from '../../../../testing/real-nodes.ts'
import { BitcoinChain } from './chain.ts'
import { UTXO_NETWORKS } from './networks.ts'
import { bitcoinRpc } from './rpc.ts'
import { Faults } from '../faults.ts'
import { manualTime } from '../timing.ts'
import { key, payment, type Output, type Shape, type Spend } from '../../testing/bitcoin-keys.ts'
import { removeHome, tempHome } from '../../testing/support.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

/**
 * Optional: sends the same transactions to a real node of the Core family and to the local ledger,
 * and expects the same results.
 */
const { path: binary, skip } = nodeForTests('litecoind')

const home = tempHome()
const [alice, bob] = [key(51), key(52)]
/** Litecoin's regtest differs from Bitcoin's in this prefix only. */
const RLTC = {
  messagePrefix: '',
  bech32: 'rltc',
  bip32: { public: 0, private: 0 },
  pubKeyHash: 111,
  scriptHash: 58,
  wif: 239,
}
const addressOf = ({ publicKey }: { publicKey: Uint8Array }): string =>
  payments.p2wpkh({ pubkey: publicKey, network: RLTC }).address!

type Answer = { result: unknown; error: { code: number; message: string } | null }
type Node = {
  name: string
  call: (method: string, ...params: unknown[]) => Promise<Answer>
  coin: () => Promise<Spend>
  mine: () => Promise<unknown>
}

let child: ChildProcess | undefined
let chain: BitcoinChain | undefined
let nodes: Node[] = []
const faults = new Faults('no-estimate')

before(async () => {
  if (skip !== false) return
  const network = UTXO_NETWORKS.find(({ code }) => code === 'LTC')
  assert.ok(network)
  chain = BitcoinChain.open(`${home}/own`, { network, timing: manualTime() })
  nodes = [ours(chain), await litecoind()]
})

after(async () => {
  chain?.close()
  if (child) {
    const exit = new Promise((resolve) => child!.once('exit', resolve))
    child.kill('SIGKILL')
    await exit
  }
  removeHome(home)
})

function ours(own: BitcoinChain): Node {
  const call = async (method: string, ...params: unknown[]) =>
    JSON.parse(bitcoinRpc(own, faults, JSON.stringify({ id: 1, method, params }))!.body) as Answer
  return {
    name: 'ledger',
    call,
    mine: async () => own.mine(1),
    coin: async () => {
      const txid = own.fund(addressOf(alice), '50')
      const { block, index } = own.ledger.txIndex.get(txid)!
      const { outs } = block.txs[index]!
      return {
        txid,
        vout: outs.findIndex(({ script }) => script.equals(Buffer.from(alice.script))),
        value: 5_000_000_000n,
      }
    },
  }
}

async function litecoind(): Promise<Node> {
  const [port] = await freePorts(1)
  const options = {
    datadir: home,
    rpcport: port,
    rpcuser: 'u',
    rpcpassword: 'p',
    vbparams: 'mweb:-2:0',
    listen: 0,
    dnsseed: 0,
    txindex: 1,
    dbcache: 4,
    server: 1,
    // Main networks refuse what is not standard; only regtest accepts it by default.
    acceptnonstdtxn: 0,
  }
  child = spawn(
    binary,
    ['-regtest', ...Object.entries(options).map(([name, value]) => `-${name}=${value}`)],
    { stdio: 'ignore' },
  )
  const call = async (method: string, ...params: unknown[]) => {
    const headers = { authorization: `Basic ${Buffer.from('u:p').toString('base64')}` }
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ id: 1, method, params }),
    })
    return (await response.json()) as Answer
  }
  await waitFor('litecoind answers', async () =>
    call('getblockcount').then(
      ({ error }) => error === null,
      () => false,
    ),
  )
  await call('createwallet', 'w')
  const [address, elsewhere] = [addressOf(alice), addressOf(bob)]
  const blocks = (await call('generatetoaddress', 24, address)).result as string[]
  await call('generatetoaddress', 100, elsewhere)
  return {
    name: 'litecoind',
    call,
    mine: async () => call('generatetoaddress', 1, elsewhere),
    coin: async () => {
      const { tx } = (await call('getblock', blocks.shift(), 2)).result as {
        tx: { txid: string }[]
      }
      return { txid: tx[0]!.txid, vout: 0, value: 5_000_000_000n }
    },
  }
}

const FEE = 1000n

function pay(
  spends: Spend[],
  outputs: Output[] = [
    { script: bob.script, value: spends.reduce((sum, { value }) => sum + value, 0n) - FEE },
  ],
  shape: Shape = {},
) {
  return payment(alice, spends, outputs, shape)
}

/**
 * Returns the code and the reason without details, because the wording of details changes between
 * versions.
 */
async function verdicts(node: Node, tx: Transaction): Promise<unknown[]> {
  const tested = (
    (await node.call('testmempoolaccept', [tx.toHex()])).result as {
      allowed: boolean
      'reject-reason'?: string
    }[]
  )[0]!
  const sent = await node.call('sendrawtransaction', tx.toHex())
  // The script failures that are called mandatory also differ between versions.
  const short = (text?: string) =>
    text
      ?.replace(/(,| \().*$/, '')
      .replace(/^(non-)?mandatory-(script-verify-flag)(-failed)?$/, '$2')
  return [
    tested.allowed,
    short(tested['reject-reason']),
    sent.error?.code ?? 'accepted',
    short(sent.error?.message),
  ]
}

const CASES: Record<string, (spend: Spend) => Promise<Transaction>> = {
  'a valid payment': (spend) => pay([spend]),
  'a tampered signature': (spend) => pay([spend], undefined, { tamper: true }),
  'another key': (spend) =>
    payment(bob, [spend], [{ script: bob.script, value: spend.value - FEE }]),
  'a high s': (spend) => pay([spend], undefined, { highS: true }),
  'an undefined hash type': (spend) => pay([spend], undefined, { hashType: 0x41 }),
  'a wrong amount in the signature': (spend) =>
    pay(
      [{ ...spend, value: spend.value + 1n }],
      [{ script: bob.script, value: spend.value - FEE }],
    ),
  'an unknown input': (spend) => pay([{ ...spend, txid: 'ab'.repeat(32) }]),
  dust: (spend) =>
    pay(
      [spend],
      [
        { script: bob.script, value: 1n },
        { script: bob.script, value: spend.value - FEE },
      ],
    ),
  'a fee below the relay fee': (spend) =>
    pay([spend], [{ script: bob.script, value: spend.value - 50n }]),
  'more out than in': (spend) => pay([spend], [{ script: bob.script, value: spend.value + 1n }]),
  'no outputs': (spend) => pay([spend], []),
  'the same input twice': (spend) => pay([spend, spend]),
  'a version of the future': (spend) => pay([spend], undefined, { version: 9 }),
  'an output that is not standard': (spend) =>
    pay([spend], [{ script: Buffer.from([0x51]), value: spend.value - FEE }]),
  'a lock time to come': (spend) =>
    pay([{ ...spend, sequence: 0xfffffffe }], undefined, { locktime: 400_000_000 }),
  'a relative lock time to come': (spend) => pay([{ ...spend, sequence: 60_000 }]),
  'a fee beyond the ceiling': (spend) =>
    pay([spend], [{ script: bob.script, value: spend.value / 2n }]),
  'too heavy': (spend) =>
    pay(
      [spend],
      Array.from({ length: 3300 }, () => ({ script: bob.script, value: 100_000n })),
    ),
}

for (const [name, build] of Object.entries(CASES)) {
  test(`litecoind and the local node accept or refuse alike: ${name}`, { skip }, async () => {
    const [own, real] = await Promise.all(
      nodes.map(async (node) => verdicts(node, await build(await node.coin()))),
    )
    assert.deepEqual(own, real)
  })
}

test(
  'litecoind and the local node accept or refuse replacements and duplicates alike',
  { skip },
  async () => {
    const matches = await Promise.all(
      nodes.map(async (node) => {
        const spend = await node.coin()
        const paying = (fee: bigint) =>
          pay([spend], [{ script: bob.script, value: spend.value - fee }])
        const steps = [
          await verdicts(node, await paying(1000n)),
          await verdicts(node, await paying(1000n)),
        ]
        for (const fee of [900n, 1050n, 1200n]) steps.push(await verdicts(node, await paying(fee)))
        await node.mine()
        steps.push(await verdicts(node, await paying(1200n)).then(([, , code]) => [code]))
        return steps
      }),
    )
    assert.deepEqual(matches[0], matches[1])
  },
)

test(
  'objects of both nodes contain the fields that a client reads, with the same types',
  { skip },
  async () => {
    const shape = (value: unknown): unknown =>
      value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
    const read = async (node: Node) => {
      const spend = await node.coin()
      const tx = await pay([spend])
      await node.call('sendrawtransaction', tx.toHex())
      const entry = (await node.call('getmempoolentry', tx.getId())).result as object
      await node.mine()
      const hash = (await node.call('getbestblockhash')).result
      return {
        getblockchaininfo: (await node.call('getblockchaininfo')).result as object,
        getblockheader: (await node.call('getblockheader', hash)).result as object,
        getblock: (await node.call('getblock', hash, 2)).result as object,
        getrawtransaction: (await node.call('getrawtransaction', tx.getId(), true))
          .result as object,
        gettxout: (await node.call('gettxout', tx.getId(), 0)).result as object,
        getmempoolentry: entry,
        getmempoolinfo: (await node.call('getmempoolinfo')).result as object,
        estimatesmartfee: (await node.call('estimatesmartfee', 2)).result as object,
        ...(await wallet(node)),
      }
    }
    /** Returns the node's wallet after a payment to itself, and a scan for its coins. */
    const wallet = async (node: Node) => {
      const address = String((await node.call('getnewaddress', 'rent')).result)
      const { hash } = payments.p2wpkh({ address, network: RLTC })
      const spend = await node.coin()
      await node.call(
        'sendrawtransaction',
        (
          await pay(
            [spend],
            [{ script: payments.p2wpkh({ hash: hash! }).output!, value: spend.value - FEE }],
          )
        ).toHex(),
      )
      await node.mine()
      const { unspents, ...scan } = (await node.call('scantxoutset', 'start', [`addr(${address})`]))
        .result as { unspents: object[] }
      const [coin] = (await node.call('listunspent', 1, 9_999_999, [address])).result as object[]
      const balance = (await node.call('getbalance')).result
      assert.ok(Number(balance) > 49, node.name)
      return {
        listunspent: coin as object,
        scantxoutset: scan,
        'scantxoutset.unspents': unspents[0] as object,
      }
    }
    const [own, real] = [await read(nodes[0]!), await read(nodes[1]!)]
    /** Methods that Core has removed since, or that only Litecoin has. */
    const gone = new Set([
      'softforks',
      'warnings',
      'fee',
      'modifiedfee',
      'ancestorfees',
      'descendantfees',
      'pruneheight',
      'mweb',
      'mwebheader',
      'errors',
      'bip125-replaceable',
      'mweb_amount',
      'vkern',
      'time_offset',
    ])
    for (const [method, object] of Object.entries(real)) {
      for (const [field, value] of Object.entries(object)) {
        if (gone.has(field) || field.includes('mweb')) continue
        const mine = (own as Record<string, Record<string, unknown>>)[method]![field]
        assert.equal(shape(mine), shape(value), `${method}.${field}`)
      }
    }
  },
)

test('without an estimate, both nodes answer estimatesmartfee alike', { skip }, async () => {
  faults.set('no-estimate')
  try {
    for (const target of [1, 2, 6, 144, 1008, 0, 1009]) {
      const [ledger, real] = await Promise.all(
        nodes.map(async ({ call }) => {
          const { result, error } = await call('estimatesmartfee', target)
          // The number of blocks depends on how many blocks with transactions the node has seen.
          const { errors, blocks } = (result ?? {}) as { errors?: unknown; blocks?: unknown }
          return { errors, blocks: typeof blocks, error }
        }),
      )
      assert.deepEqual(ledger, real, String(target))
    }
  } finally {
    faults.set('heal')
  }
})

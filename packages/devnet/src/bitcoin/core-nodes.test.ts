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
 * Optional: sends the same transactions to real nodes of the Core family and to the local ledger of
 * the same network, and expects the same results.
 */
const [alice, bob] = [key(51), key(52)]
const REAL = {
  bitcoind: {
    code: 'BTC',
    bech32: 'bcrt',
    // The build of `npm run nodes:build` has no wallet.
    hasWallet: false,
    options: {},
  },
  litecoind: {
    code: 'LTC',
    bech32: 'rltc',
    hasWallet: true,
    options: {
      vbparams: 'mweb:-2:0',
      // Main networks refuse what is not standard; only regtest accepts it by default.
      acceptnonstdtxn: 0,
    },
  },
} as const
type RealName = keyof typeof REAL

/** Networks of real nodes, which differ from Bitcoin's regtest in this prefix only. */
const paymentsOn = (name: RealName) => ({
  messagePrefix: '',
  bech32: REAL[name].bech32,
  bip32: { public: 0, private: 0 },
  pubKeyHash: 111,
  scriptHash: 58,
  wif: 239,
})
const addressOf = (name: RealName, { publicKey }: { publicKey: Uint8Array }): string =>
  payments.p2wpkh({ pubkey: publicKey, network: paymentsOn(name) }).address!

type Answer = { result: unknown; error: { code: number; message: string } | null }
type Node = {
  name: string
  call: (method: string, ...params: unknown[]) => Promise<Answer>
  coin: () => Promise<Spend>
  mine: () => Promise<unknown>
}

/** A real node and the local ledger of its network. */
class Pair {
  readonly name: RealName
  readonly skip: string | false
  readonly faults = new Faults('no-estimate')
  readonly #binary: string
  readonly #home = tempHome()
  #child: ChildProcess | undefined
  #chain: BitcoinChain | undefined
  #nodes: readonly [own: Node, real: Node] | undefined

  constructor(name: RealName) {
    this.name = name
    const { path, skip } = nodeForTests(name)
    this.#binary = path
    this.skip = skip
  }

  get nodes(): readonly [own: Node, real: Node] {
    assert.ok(this.#nodes)
    return this.#nodes
  }

  async start(): Promise<void> {
    if (this.skip !== false) return
    const network = UTXO_NETWORKS.find(({ code }) => code === REAL[this.name].code)
    assert.ok(network)
    this.#chain = BitcoinChain.open(`${this.#home}/own`, { network, timing: manualTime() })
    this.#nodes = [this.#ours(this.#chain), await this.#real()]
  }

  async stop(): Promise<void> {
    this.#chain?.close()
    const child = this.#child
    if (child) {
      const exit = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await exit
    }
    removeHome(this.#home)
  }

  #ours(own: BitcoinChain): Node {
    const call = async (method: string, ...params: unknown[]) =>
      JSON.parse(
        bitcoinRpc(own, this.faults, JSON.stringify({ id: 1, method, params }))!.body,
      ) as Answer
    return {
      name: 'ledger',
      call,
      mine: async () => own.mine(1),
      coin: async () => {
        const txid = own.fund(addressOf(this.name, alice), '50')
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

  async #real(): Promise<Node> {
    const { options, hasWallet } = REAL[this.name]
    const [port] = await freePorts(1)
    const words = Object.entries({
      datadir: this.#home,
      rpcport: port,
      rpcuser: 'u',
      rpcpassword: 'p',
      listen: 0,
      dnsseed: 0,
      txindex: 1,
      dbcache: 4,
      server: 1,
      ...options,
    }).map(([name, value]) => `-${name}=${value}`)
    this.#child = spawn(this.#binary, ['-regtest', ...words], { stdio: 'ignore' })
    const call = async (method: string, ...params: unknown[]) => {
      const headers = { authorization: `Basic ${Buffer.from('u:p').toString('base64')}` }
      const response = await fetch(`http://127.0.0.1:${port}/`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ id: 1, method, params }),
      })
      return (await response.json()) as Answer
    }
    await waitFor(`${this.name} answers`, async () =>
      call('getblockcount').then(
        ({ error }) => error === null,
        () => false,
      ),
    )
    if (hasWallet) await call('createwallet', 'w')
    const [address, elsewhere] = [addressOf(this.name, alice), addressOf(this.name, bob)]
    const blocks = (await call('generatetoaddress', 24, address)).result as string[]
    await call('generatetoaddress', 100, elsewhere)
    return {
      name: this.name,
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
}

const pairs = (Object.keys(REAL) as RealName[]).map((name) => new Pair(name))
before(() => Promise.all(pairs.map((pair) => pair.start())))
after(() => Promise.all(pairs.map((pair) => pair.stop())))

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
      .replace(/^((non-)?mandatory|mempool)-(script-verify-flag)(-failed)?$/, '$3')
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
    pay([spend], [{ script: bob.script, value: spend.value - 5n }]),
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

for (const pair of pairs) {
  const { name, skip } = pair
  for (const [title, build] of Object.entries(CASES))
    test(`${name} and the local node accept or refuse alike: ${title}`, { skip }, async () => {
      const [own, real] = await Promise.all(
        pair.nodes.map(async (node) => verdicts(node, await build(await node.coin()))),
      )
      assert.deepEqual(own, real)
    })

  test(
    `${name} and the local node accept or refuse replacements and duplicates alike`,
    { skip },
    async () => {
      const matches = await Promise.all(
        pair.nodes.map(async (node) => {
          const spend = await node.coin()
          const paying = (fee: bigint) =>
            pay([spend], [{ script: bob.script, value: spend.value - fee }])
          const steps = [
            await verdicts(node, await paying(1000n)),
            await verdicts(node, await paying(1000n)),
          ]
          for (const fee of [900n, 1005n, 1200n])
            steps.push(await verdicts(node, await paying(fee)))
          await node.mine()
          steps.push(await verdicts(node, await paying(1200n)).then(([, , code]) => [code]))
          return steps
        }),
      )
      assert.deepEqual(matches[0], matches[1])
    },
  )

  test(
    `objects of ${name} and the local node contain the fields that a client reads, with the same types`,
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
          ...(REAL[name].hasWallet ? await wallet(node) : {}),
        }
      }
      /** Returns the node's wallet after a payment to itself, and a scan for its coins. */
      const wallet = async (node: Node) => {
        const address = String((await node.call('getnewaddress', 'rent')).result)
        const { hash } = payments.p2wpkh({ address, network: paymentsOn(name) })
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
        const { unspents, ...scan } = (
          await node.call('scantxoutset', 'start', [`addr(${address})`])
        ).result as { unspents: object[] }
        const [coin] = (await node.call('listunspent', 1, 9_999_999, [address])).result as object[]
        const balance = (await node.call('getbalance')).result
        assert.ok(Number(balance) > 49, node.name)
        return {
          listunspent: coin as object,
          scantxoutset: scan,
          'scantxoutset.unspents': unspents[0] as object,
        }
      }
      const [own, real] = await Promise.all(pair.nodes.map(read))
      /** Fields that Core has removed or added since, or that only Litecoin has; no client reads them. */
      const gone = new Set([
        'softforks',
        'coinbase_tx',
        'chunkweight',
        'permitbaremultisig',
        'maxdatacarriersize',
        'limitclustercount',
        'limitclustersize',
        'optimal',
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
      const differing = Object.entries(real ?? {}).flatMap(([method, object]) =>
        Object.entries(object).flatMap(([field, value]) => {
          const mine = (own as Record<string, Record<string, unknown>>)[method]![field]
          return gone.has(field) || field.includes('mweb') || shape(mine) === shape(value)
            ? []
            : [`${method}.${field}: ${shape(mine)}, ${shape(value)}`]
        }),
      )
      assert.deepEqual(differing, [])
    },
  )

  test(
    `${name} and the local node differ in the lowest fee as written here`,
    { skip },
    async () => {
      // Core has relayed a tenth of the earlier minimum since version 29.1. Many nodes still require the
      // earlier one, so the local chain does.
      const relays = async (node: Node) => {
        const spend = await node.coin()
        const tx = await pay([spend], [{ script: bob.script, value: spend.value - 50n }])
        return (await verdicts(node, tx))[0]
      }
      assert.deepEqual(await Promise.all(pair.nodes.map(relays)), [false, name === 'bitcoind'])
    },
  )

  test(
    `without an estimate, ${name} and the local node answer estimatesmartfee alike`,
    { skip },
    async () => {
      pair.faults.set('no-estimate')
      try {
        for (const target of [1, 2, 6, 144, 1008, 0, 1009]) {
          const [ledger, real] = await Promise.all(
            pair.nodes.map(async ({ call }) => {
              const { result, error } = await call('estimatesmartfee', target)
              // The number of blocks depends on how many blocks with transactions the node has seen.
              const { errors, blocks } = (result ?? {}) as { errors?: unknown; blocks?: unknown }
              return { errors, blocks: typeof blocks, error }
            }),
          )
          assert.deepEqual(ledger, real, String(target))
        }
      } finally {
        pair.faults.set('heal')
      }
    },
  )
}

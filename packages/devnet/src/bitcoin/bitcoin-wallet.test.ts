// The local node's wallet and scantxoutset, on every UTXO chain.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { BitcoinChain } from './chain.ts'
import { loadCashMachine } from './cash-script.ts'
import { UTXO_NETWORKS } from './networks.ts'
import { bitcoinRpc } from './rpc.ts'
import { Faults } from '../faults.ts'
import { manualTime } from '../timing.ts'
import { key, payment } from '../../testing/bitcoin-keys.ts'
import { removeHome, tempHome } from '../../testing/support.ts'

interface Unspent {
  txid: string
  vout: number
  address: string
  label: string
  scriptPubKey: string
  amount: number
  confirmations: number
  spendable: boolean
  solvable: boolean
  safe: boolean
  desc: string
}
interface Scan {
  success: boolean
  txouts: number
  height: number
  bestblock: string
  total_amount: number
  unspents: {
    txid: string
    vout: number
    amount: number
    coinbase: boolean
    height: number
    confirmations: number
    desc: string
  }[]
}

for (const network of UTXO_NETWORKS) {
  describe(network.code, () => {
    const home = tempHome()
    let chain: BitcoinChain
    const ask = (method: string, ...params: unknown[]) =>
      JSON.parse(
        bitcoinRpc(chain, new Faults(), JSON.stringify({ id: 1, method, params }))!.body,
      ) as {
        result: unknown
        error: { code: number; message: string } | null
      }
    const call = <T>(method: string, ...params: unknown[]): T => {
      const { result, error } = ask(method, ...params)
      if (error) throw new Error(`${error.code} ${error.message}`)
      return result as T
    }
    const scan = (...objects: unknown[]) => call<Scan>('scantxoutset', 'start', objects)

    before(async () => {
      if (network.forkId) await loadCashMachine()
      chain = BitcoinChain.open(home, { network, timing: manualTime() })
    })
    after(() => {
      chain.close()
      removeHome(home)
    })

    test('fund and mine pay a new address, and balance, coins and scan agree', () => {
      assert.equal(call('getbalance'), 0)
      assert.deepEqual(call('listunspent'), [])
      const address = call<string>('getnewaddress', 'rent')
      const mined = call<string>('getnewaddress')
      assert.notEqual(address, mined)
      assert.equal(call<{ isvalid: boolean }>('validateaddress', address).isvalid, true)
      const txid = chain.fund(address, '1.5')
      assert.equal(call('getbalance'), 1.5)
      const [coin, ...rest] = call<Unspent[]>('listunspent')
      assert.equal(rest.length, 0)
      assert.deepEqual(
        [
          coin?.txid,
          coin?.address,
          coin?.label,
          coin?.amount,
          coin?.confirmations,
          coin?.spendable,
          coin?.safe,
        ],
        [txid, address, 'rent', 1.5, 1, true, true],
      )
      const result = scan(`addr(${address})`)
      assert.deepEqual(
        [
          result.success,
          result.total_amount,
          result.bestblock,
          result.unspents.map((each) => [each.txid, each.vout]),
        ],
        [true, 1.5, chain.head.hash, [[txid, coin?.vout]]],
      )
      // The wallet's descriptor finds the same coin, with its checksum and without.
      assert.deepEqual(scan(coin?.desc).unspents, result.unspents)
      assert.deepEqual(scan({ desc: coin?.desc.split('#')[0] }).unspents, result.unspents)
      // A coinbase is part of the balance once it is mature.
      const block = chain.mine(1, mined)
      assert.equal(scan(`addr(${mined})`).unspents[0]?.coinbase, true)
      assert.equal(call('getbalance'), 1.5)
      chain.mine(network.maturity)
      assert.equal(call<number>('getbalance'), 1.5 + Number(block.txs[0]!.outs[0]!.value) / 1e8)
      assert.deepEqual(
        call<Unspent[]>('listunspent', 1, 9_999_999, [mined]).map((each) => each.address),
        [mined],
      )
    })

    test('the wallet signs payments, and can spend its change immediately', () => {
      const before = call<number>('getbalance')
      const to = call<string>('getnewaddress', '', 'legacy')
      const txid = call<string>('sendtoaddress', to, 0.25)
      assert.deepEqual(call('getrawmempool'), [txid])
      const waiting = call<Unspent[]>('listunspent', 0).filter((each) => each.confirmations === 0)
      assert.ok(waiting.length === 2 && waiting.every((each) => each.safe && each.txid === txid))
      const paid = before - call<number>('getbalance')
      assert.ok(paid > 0 && paid < 0.01, `only the fee is gone: ${paid}`)
      const second = call<string>('sendtoaddress', to, '0.1')
      chain.mine(1)
      assert.deepEqual(
        [chain.ledger.txIndex.has(txid), chain.ledger.txIndex.has(second)],
        [true, true],
      )
      assert.equal(scan(`addr(${to})`).total_amount, 0.35)
      // The older coins can be signed too.
      chain.fund(to, '5')
      const all = call<number>('getbalance')
      assert.ok(call<string>('sendtoaddress', to, Math.floor(all) - 1))
      chain.mine(1)
    })

    test('every refusal states its reason', () => {
      assert.match(
        ask('sendtoaddress', call('getnewaddress'), 10_000_000).error?.message ?? '',
        /^Insufficient funds/,
      )
      assert.equal(ask('sendtoaddress', 'nobody', 1).error?.code, -5)
      assert.equal(ask('sendtoaddress', call('getnewaddress'), -1).error?.code, -3)
      assert.equal(ask('getnewaddress', '', 'bech32m').error?.code, -5)
      assert.equal(ask('getnewaddress', 7).error?.code, -3)
      assert.equal(ask('listunspent', 1, 2, ['nobody']).error?.code, -5)
      for (const bad of [
        'addr(nobody)',
        'raw(0)',
        'wpkh(02)',
        'sh(wpkh(02))',
        'nothing',
        `raw(51)#qqqqqqqq`,
      ])
        assert.equal(ask('scantxoutset', 'start', [bad]).error?.code, -5, bad)
      assert.equal(ask('scantxoutset', 'begin').error?.code, -8)
      assert.equal(ask('scantxoutset', 'start').error?.code, -1)
      assert.equal(call('scantxoutset', 'status'), null)
      assert.equal(scan(`pkh(${Buffer.from(key(9).publicKey).toString('hex')})`).total_amount, 0)
    })

    test('the keys are the same after a restart', () => {
      const [balance, coins] = [call('getbalance'), call('listunspent')]
      chain.close()
      chain = BitcoinChain.open(home, { network, timing: manualTime() })
      assert.deepEqual([call('getbalance'), call('listunspent')], [balance, coins])
      assert.ok(call<string>('sendtoaddress', call('getnewaddress'), 0.1))
    })

    // The signatures of the external wallet are implemented for BTC.
    if (network.code === 'BTC')
      test('unconfirmed coins of another wallet are not safe and not part of the balance', async () => {
        const stranger = key(77)
        const txid = chain.fund(stranger.address, '2')
        const { outs } = chain.head.txs.find((tx) => tx.txid === txid)!
        const to = call<string>('getnewaddress')
        const [before, script] = [
          call('getbalance'),
          Buffer.from(call<{ scriptPubKey: string }>('validateaddress', to).scriptPubKey, 'hex'),
        ]
        const vout = outs.findIndex((out) => out.script.equals(Buffer.from(stranger.script)))
        const tx = await payment(
          stranger,
          [{ txid, vout, value: 200_000_000n }],
          [{ script, value: 199_990_000n }],
        )
        call('sendrawtransaction', tx.toHex())
        const waiting = (...more: unknown[]) =>
          call<Unspent[]>('listunspent', 0, 9_999_999, [to], ...more)
        assert.deepEqual(
          [call('getbalance'), waiting().map(({ safe }) => safe), waiting(false)],
          [before, [false], []],
        )
        chain.mine(1)
        assert.equal(waiting(false)[0]?.safe, true)
      })
  })
}

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Block } from 'bitcoinjs-lib'
import { scriptOf } from './address.ts'
import { BitcoinChain } from './chain.ts'
import { descriptorChecksum } from './descriptor.ts'
import { bitcoinRpc } from './rpc.ts'
import { Faults } from '../faults.ts'
import { manualTime } from '../timing.ts'
import { key } from '../../testing/bitcoin-keys.ts'
import { removeHome, tempHome } from '../../testing/support.ts'

const home = tempHome()
let chain: BitcoinChain

before(() => {
  chain = BitcoinChain.open(home, { timing: manualTime() })
})
after(() => {
  chain.close()
  removeHome(home)
})

function text(method: string, ...params: unknown[]): string {
  return bitcoinRpc(chain, new Faults(), JSON.stringify({ id: 1, method, params }))!.body
}

function call<T>(method: string, ...params: unknown[]): T {
  return (JSON.parse(text(method, ...params)) as { result: T }).result
}

test('an independent library accepts every block, beginning with the regtest genesis block', () => {
  chain.fund(key(21).address, '2.5')
  assert.equal(
    call('getblockhash', 0),
    '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206',
  )
  let previous: Block | undefined
  for (let height = 0; height <= chain.head.height; height += 1) {
    const hash = call<string>('getblockhash', height)
    const block = Block.fromHex(call<string>('getblock', hash, 0))
    assert.equal(block.getId(), hash)
    assert.ok(block.checkProofOfWork(), `proof of work of ${height}`)
    // The genesis block contains only a merkle root of one transaction without a witness.
    assert.ok(
      height === 0 ? block.checkTxRoots() : block.checkTxRoots() && block.hasWitnessCommit(),
      `roots of ${height}`,
    )
    if (previous) assert.deepEqual(Buffer.from(block.prevHash!), Buffer.from(previous.getHash()))
    previous = block
  }
})

test('writes amounts with eight decimals', () => {
  const txid = chain.fund(key(22).address, '1.1')
  assert.match(text('getrawtransaction', txid, 2), /"value":1\.10000000,/)
})

test('the faucet can pay 10,000 BTC from the start', () => {
  assert.match(chain.fund(key(23).address, '9990'), /^[0-9a-f]{64}$/)
  assert.throws(() => chain.fund(key(23).address, '9990'), /more than the miner can pay now/)
})

test('returns block and header objects as Bitcoin Core does', () => {
  const { height, hash } = chain.head
  const header = call<Record<string, unknown>>('getblockheader', hash)
  assert.deepEqual(
    [header['height'], header['confirmations'], header['nextblockhash']],
    [height, 1, undefined],
  )
  assert.equal(call<string>('getblockheader', hash, false).length, 160)
  const info = call<Record<string, unknown>>('getblockchaininfo')
  assert.deepEqual(
    [info['chain'], info['blocks'], info['bestblockhash'], info['initialblockdownload']],
    ['regtest', height, hash, false],
  )
  assert.deepEqual(call('getindexinfo'), { txindex: { synced: true, best_block_height: height } })
  assert.deepEqual([call('getblockcount'), call('getbestblockhash')], [height, hash])
  assert.match(text('getblockhash', height + 1), /"code":-8/)
  assert.match(text('getblock', 'ab'.repeat(32)), /"code":-5/)
  assert.match(text('nosuchmethod'), /"code":-32601/)
})

test('fee estimates decrease as the confirmation target increases', () => {
  assert.match(text('estimatesmartfee', 2), /"feerate":0\.00010000/)
  assert.match(text('estimatesmartfee', 6), /"feerate":0\.00005000/)
  assert.match(text('estimatesmartfee', 24), /"feerate":0\.00002000/)
})

test('validateaddress accepts valid addresses and refuses invalid ones', () => {
  const { address, legacy } = key(24)
  assert.equal(call<{ isvalid: boolean }>('validateaddress', address).isvalid, true)
  assert.equal(call<{ isvalid: boolean }>('validateaddress', legacy).isvalid, true)
  for (const wrong of [
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    `${address.slice(0, -1)}q`,
    '1BoatSLRHtKNngkdXEeobR76b53LETtpyT',
    '',
  ]) {
    assert.equal(call<{ isvalid: boolean }>('validateaddress', wrong).isvalid, false, wrong)
  }
  // The vectors of BIP350, with the same witness programs in regtest addresses.
  assert.ok(Buffer.isBuffer(scriptOf('bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080')))
  assert.equal(descriptorChecksum('raw(deadbeef)'), '89f8spxm')
})

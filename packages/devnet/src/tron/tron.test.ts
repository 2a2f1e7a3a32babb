// The local Tron chain: resources that pay for transactions, refused transactions, and the state
// after a fault.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { TronWeb, utils } from 'tronweb'
import {
  addressOf,
  balanceOf,
  client,
  DAY_MS,
  devnet,
  fund,
  headTime,
  home,
  infoOf,
  mine,
  post,
  restart,
  secretOf,
  send,
  SUN,
  text,
  tokensOf,
  transferToken,
  USDC,
  USDT,
  useTron,
  type Info,
  type Json,
} from '../../testing/tron-support.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

void useTron()

test('the first TRX transfer pays a 1.1 TRX activation, the next uses free bandwidth', async () => {
  await fund('TRX', 'alice', '1000')
  assert.equal(await balanceOf('alice'), 1000 * SUN)
  const tw = client(secretOf('alice'))
  const first = await tw.trx.sendTransaction(addressOf('bob'), 5 * SUN)
  assert.equal(first.result, true)
  await mine()
  assert.equal(await balanceOf('bob'), 5 * SUN)
  assert.equal(await balanceOf('alice'), 1000 * SUN - 5 * SUN - 1_100_000)
  const info = await infoOf(first.txid)
  assert.deepEqual(
    [info.fee, info.receipt?.net_fee, info.receipt?.net_usage],
    [1_100_000, 100_000, undefined],
  )
  const second = await tw.trx.sendTransaction(addressOf('bob'), 5 * SUN)
  await mine()
  const { fee, receipt } = await infoOf(second.txid)
  assert.equal(fee, undefined)
  const points = receipt?.net_usage ?? 0
  assert.ok(points >= 264 && points <= 268, String(points))
  await mine(2)
  assert.equal((await tw.trx.getTransactionInfo(second.txid)).id, second.txid)
  const block = await tw.trx.getBlock(info.blockNumber!)
  assert.equal(block.transactions?.[0]?.ret[0]?.contractRet, 'SUCCESS')
  assert.equal(utils.transaction.txCheck(block.transactions?.[0] as never), true)
})

test('600 bandwidth points are free each day; further bytes cost 1000 sun each', async () => {
  await fund('TRX', 'carol', '100')
  const pay = async () =>
    (
      await send(
        'carol',
        client(secretOf('carol')).transactionBuilder.sendTrx(
          addressOf('bob'),
          1,
          addressOf('carol'),
        ),
      )
    ).info
  const [one, two, three] = [await pay(), await pay(), await pay()]
  assert.deepEqual([one.fee, two.fee], [undefined, undefined])
  assert.equal(three.fee, three.receipt?.net_fee)
  assert.ok(three.fee! >= 264_000 && three.fee! <= 268_000, String(three.fee))
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+1d' })
  assert.equal((await pay()).fee, undefined)
})

test('reports a repeated transaction as a duplicate, whether it is waiting or mined', async () => {
  const tw = client(secretOf('alice'))
  const signed = await tw.trx.sign(
    await tw.transactionBuilder.sendTrx(addressOf('bob'), 7, addressOf('alice')),
  )
  assert.equal((await tw.trx.sendRawTransaction(signed)).result, true)
  const before = await tw.trx.sendRawTransaction(signed)
  await mine()
  const bob = await balanceOf('bob')
  const after = await tw.trx.sendRawTransaction(signed)
  assert.deepEqual([before.code, after.code], ['DUP_TRANSACTION_ERROR', 'DUP_TRANSACTION_ERROR'])
  const hex = await tw.trx.sendHexTransaction(
    Buffer.concat([
      Buffer.from([0x0a, ...varint(signed.raw_data_hex.length / 2)]),
      Buffer.from(signed.raw_data_hex, 'hex'),
      Buffer.from([0x12, 65]),
      Buffer.from(signed.signature[0]!, 'hex'),
    ]).toString('hex'),
  )
  assert.equal(hex.code, 'DUP_TRANSACTION_ERROR')
  await mine()
  assert.equal(await balanceOf('bob'), bob)
})

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, value >> 7]
}

test('refuses a missing signature, and a signature by another key or of other bytes', async () => {
  const tw = client(secretOf('alice'))
  const unsigned = await tw.transactionBuilder.sendTrx(addressOf('bob'), 9, addressOf('alice'))
  const signed = await tw.trx.sign(structuredClone(unsigned))
  const codeOf = async (change: Json) =>
    (await post('wallet/broadcasttransaction', { ...(signed as unknown as Json), ...change }))[
      'code'
    ]
  const other = utils.crypto.ECKeySign(
    Buffer.from(unsigned.txID, 'hex') as never,
    Buffer.from(secretOf('mallory'), 'hex') as never,
  )
  assert.equal(await codeOf({ signature: [other] }), 'SIGERROR')
  assert.equal(await codeOf({ signature: [] }), 'SIGERROR')
  assert.equal(await codeOf({ signature: ['00'.repeat(65)] }), 'SIGERROR')
  assert.equal(await codeOf({ signature: [signed.signature[0]!.slice(2)] }), 'SIGERROR')
  assert.equal(await codeOf({ signature: [signed.signature[0], signed.signature[0]] }), 'SIGERROR')
  // Other bytes with the same id, and the same bytes with another id.
  const dearer = await tw.transactionBuilder.sendTrx(addressOf('bob'), 10, addressOf('alice'))
  assert.match(
    String(
      (
        await post('wallet/broadcasttransaction', {
          ...(signed as unknown as Json),
          raw_data_hex: dearer.raw_data_hex,
        })
      )['Error'],
    ),
    /txID/,
  )
  assert.equal(await codeOf({ raw_data_hex: dearer.raw_data_hex, txID: dearer.txID }), 'SIGERROR')
})

test('refuses transactions that are expired, too long-lived, or refer to a missing block', async () => {
  const tw = client(secretOf('alice'))
  const header = await tw.trx.getCurrentRefBlockParams()
  const now = await headTime()
  const codeOf = async (change: Json) => {
    const blockHeader = { ...header, timestamp: now, ...change }
    return (
      await send(
        'alice',
        tw.transactionBuilder.sendTrx(addressOf('bob'), 11, addressOf('alice'), {
          blockHeader,
        } as never),
      )
    ).answer['code']
  }
  assert.equal(await codeOf({ expiration: now }), 'TRANSACTION_EXPIRATION_ERROR')
  assert.equal(await codeOf({ expiration: now + DAY_MS + 60_000 }), 'TRANSACTION_EXPIRATION_ERROR')
  assert.equal(
    await codeOf({ expiration: now + 60_000, ref_block_hash: '00'.repeat(8) }),
    'TAPOS_ERROR',
  )
  assert.equal(await codeOf({ expiration: now + 60_000, ref_block_bytes: 'ffff' }), 'TAPOS_ERROR')
  assert.equal(await codeOf({ expiration: now + 600_000 }), undefined)
})

test('refuses transactions that the accounts do not allow, with a reason', async () => {
  const tw = client(secretOf('alice'))
  const wordsOf = async (name: string, unsigned: Promise<unknown>) => {
    const { answer } = await send(name, unsigned)
    return [answer['code'], text(answer['message'])]
  }
  const [code, words] = await wordsOf(
    'alice',
    tw.transactionBuilder.sendTrx(addressOf('bob'), 10 ** 15, addressOf('alice')),
  )
  assert.deepEqual(
    [code, /balance is not sufficient/.test(String(words))],
    ['CONTRACT_VALIDATE_ERROR', true],
  )
  assert.match(
    (
      await wordsOf(
        'nobody',
        client(secretOf('nobody')).transactionBuilder.sendTrx(
          addressOf('bob'),
          1,
          addressOf('nobody'),
        ),
      )
    ).join(' '),
    /VALIDATE.*does not exist/,
  )
  assert.match(
    (await wordsOf('alice', tw.transactionBuilder.sendTrx(USDT, 1, addressOf('alice')))).join(' '),
    /smartContract/,
  )
})

test('TRC-20: a transfer burns energy at 100 sun, about 130,000 for a new holder, else 64,000', async () => {
  await fund('USDT_TRX', 'alice', '1000')
  const tw = client(secretOf('alice'))
  const contract = await tw.contract().at(USDT)
  assert.equal(await contract['balanceOf']!(addressOf('alice')).call(), 1_000_000_000n)
  const before = await balanceOf('alice')
  const id = (await contract['transfer']!(addressOf('bob'), 250_000).send({
    feeLimit: 50 * SUN,
  })) as string
  await mine()
  const first = await infoOf(id)
  assert.deepEqual(
    [first.receipt?.result, first.log?.length, await tokensOf('bob')],
    ['SUCCESS', 1, 250_000],
  )
  assert.ok(
    Math.abs(first.receipt!.energy_usage_total! - 130_300) < 500,
    String(first.receipt?.energy_usage_total),
  )
  assert.equal(first.receipt?.energy_fee, first.receipt!.energy_usage_total! * 100)
  assert.equal(before - (await balanceOf('alice')), first.fee)
  const second = await transferToken('alice', 'bob', 1)
  assert.ok(
    Math.abs(second.info.receipt!.energy_usage_total! - 64_300) < 500,
    String(second.info.receipt?.energy_usage_total),
  )
  await fund('USDC_TRX', 'alice', '5')
  const [usdc, more] = [
    await transferToken('alice', 'bob', 5, 50 * SUN, USDC),
    await transferToken('alice', 'bob', 5, 50 * SUN, USDC),
  ]
  assert.deepEqual([usdc.info.receipt?.result, more.info.receipt?.result], ['SUCCESS', 'SUCCESS'])
  assert.ok(
    usdc.info.receipt!.energy_usage_total! < 30_000 &&
      more.info.receipt!.energy_usage_total! < 12_000,
    'no penalty',
  )
  assert.equal(await tokensOf('bob', USDC), 10)
})

test('the estimate equals the energy that the transfer uses', async () => {
  const parameter = `${TronWeb.address.toHex(addressOf('dave')).slice(2).padStart(64, '0')}${(77).toString(16).padStart(64, '0')}`
  const { energy_used: estimated } = await post<{ energy_used: number }>(
    'wallet/triggerconstantcontract',
    {
      owner_address: TronWeb.address.toHex(addressOf('alice')),
      contract_address: TronWeb.address.toHex(USDT),
      function_selector: 'transfer(address,uint256)',
      parameter,
    },
  )
  assert.equal(
    (await transferToken('alice', 'dave', 77)).info.receipt?.energy_usage_total,
    estimated,
  )
})

test('a fee limit that is too low is charged in full, and nothing is transferred', async () => {
  const [tokens, sun] = [await tokensOf('alice'), await balanceOf('alice')]
  const { info, id } = await transferToken('alice', 'erin', 1, 5 * SUN)
  assert.deepEqual(
    [info.result, info.receipt?.result, info.receipt?.energy_fee],
    ['FAILED', 'OUT_OF_ENERGY', 5 * SUN],
  )
  assert.equal(
    (await client(secretOf('alice')).trx.getUnconfirmedTransactionInfo(id)).result,
    'FAILED',
  )
  assert.deepEqual([await tokensOf('alice'), await tokensOf('erin')], [tokens, 0])
  assert.equal(sun - (await balanceOf('alice')), info.fee)
})

test('a transfer above the balance reverts and pays for the executed part', async () => {
  const { info } = await transferToken('erin-has-none', 'bob', 1).catch(() => ({
    info: {} as Info,
  }))
  assert.equal(info.id, undefined)
  const { info: reverted } = await transferToken('alice', 'bob', 10 ** 15)
  assert.deepEqual(
    [reverted.result, reverted.receipt?.result, reverted.log],
    ['FAILED', 'REVERT', undefined],
  )
  assert.ok(
    reverted.receipt!.energy_usage_total! > 0 && reverted.receipt!.energy_usage_total! < 64_000,
  )
})

test('simulates a lost broadcast, a lost response, and an unreachable node', async () => {
  const tw = client(secretOf('alice'))
  const fault = (mode: string) => devnet.control({ command: 'fault', network: 'TRX', mode })
  const signed = async (amount: number) =>
    (await tw.trx.sign(
      await tw.transactionBuilder.sendTrx(addressOf('bob'), amount, addressOf('alice')),
    )) as unknown as Json
  const [one, two] = [await signed(21), await signed(22)]
  await fault('reject')
  assert.equal((await post('wallet/broadcasttransaction', one))['code'], 'SERVER_BUSY')
  await fault('drop-answer')
  await assert.rejects(post('wallet/broadcasttransaction', two))
  await fault('down')
  await assert.rejects(post('wallet/getnowblock'))
  await fault('heal')
  await mine()
  assert.equal((await infoOf(String(one['txID']))).id, undefined)
  assert.equal((await infoOf(String(two['txID']))).id, two['txID'])
})

test('a reorganisation removes blocks, also final ones, but never the first', async () => {
  await mine(3)
  const { id, info } = await transferToken('alice', 'bob', 4)
  const tokens = await tokensOf('bob')
  const before = await post<{ blockID: string }>('wallet/getblockbynum', { num: info.blockNumber! })
  const { block_header: header } = await post<{ block_header: { raw_data: { number: number } } }>(
    'wallet/getnowblock',
  )
  await assert.rejects(
    devnet.control({ command: 'reorg', network: 'TRX', depth: header.raw_data.number + 1 }),
    /would undo the first block/,
  )
  await devnet.control({ command: 'reorg', network: 'TRX', depth: 1, drop: true })
  assert.equal((await infoOf(id)).id, undefined)
  assert.notEqual(
    (await post<{ blockID: string }>('wallet/getblockbynum', { num: info.blockNumber! })).blockID,
    before.blockID,
  )
  assert.equal(await tokensOf('bob'), tokens - 4)
  const again = await transferToken('alice', 'bob', 4)
  await devnet.control({ command: 'reorg', network: 'TRX', depth: 1 })
  await mine()
  assert.equal((await infoOf(again.id)).receipt?.result, 'SUCCESS')
  assert.equal(await tokensOf('bob'), tokens)
  await mine(3)
  await devnet.control({ command: 'reorg', network: 'TRX', depth: 5, drop: true })
  assert.equal((await infoOf(again.id)).id, undefined, 'it was in a final block')
  assert.equal(await tokensOf('bob'), tokens - 4)
})

test('restarts a killed engine with the same balances', async () => {
  const tokens = await tokensOf('bob')
  process.kill(Number(readFileSync(join(home, 'trx', 'tvm.pid'), 'utf8').split('\n')[0]), 'SIGKILL')
  await waitFor('the contract answers again', () =>
    tokensOf('bob').then(
      (now) => now === tokens,
      () => false,
    ),
  )
  assert.equal((await transferToken('alice', 'bob', 6)).info.receipt?.result, 'SUCCESS')
  assert.equal(await tokensOf('bob'), tokens + 6)
})

test('killing the process while it produces blocks loses no data that could already be read', async () => {
  const seen: [number, string][] = []
  const state = { stopped: false }
  // The moment of the kill is counted in reported heads, so that it does not depend on the
  // machine's speed.
  const enough = Promise.withResolvers<void>()
  const watch = async () => {
    while (!state.stopped) {
      const {
        blockID,
        block_header: {
          raw_data: { number },
        },
      } = await post<{ blockID: string; block_header: { raw_data: { number: number } } }>(
        'wallet/getnowblock',
      )
      seen.push([number, blockID])
      if (seen.length >= 20) enough.resolve()
    }
  }
  const watched = watch()
  watched.catch(enough.reject)
  const work = Promise.allSettled([
    watched,
    ...Array.from({ length: 30 }, () => fund('USDT_TRX', 'bob', '1')),
    ...Array.from({ length: 30 }, () => mine(3)),
  ])
  await enough.promise
  await devnet.killAll()
  state.stopped = true
  await work
  await restart()
  for (const [num, id] of seen)
    assert.equal((await post<{ blockID: string }>('wallet/getblockbynum', { num })).blockID, id)
})

// Local Tron, driven by tronweb as it is published.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { TronWeb, utils } from 'tronweb'
import { removeHome, startDevnet, tempHome, until, type Running } from './support.ts'

type Json = Record<string, unknown>
type Info = {
  id?: string
  fee?: number
  blockNumber?: number
  result?: string
  receipt?: {
    energy_fee?: number
    energy_usage?: number
    energy_usage_total?: number
    net_fee?: number
    net_usage?: number
    result?: string
  }
  log?: unknown[]
  withdraw_expire_amount?: number
}
type Unsigned = Parameters<TronWeb['trx']['sign']>[0] & { txID: string }

const home = tempHome()
const USDT = 'TRsXgj6qYP5yWudH6UcYujx9yx2BWn3SKf'
const USDC = 'TCLTqardMxkfW9kneJgkLaj3pUpEYuToEs'
const SUN = 1_000_000
const DAY_MS = 86_400_000
let devnet: Running
let port = 0

before(async () => {
  devnet = await startDevnet(home)
  port = Number(new URL(devnet.url).port)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

const client = (secret: string) => new TronWeb({ fullHost: `${devnet.url}/trx`, privateKey: secret })
const secretOf = (name: string) => createHash('sha256').update(name).digest('hex')
const addressOf = (name: string) => TronWeb.address.fromPrivateKey(secretOf(name)) as string
const post = async <T = Json>(path: string, body: Json = {}): Promise<T> =>
  (await fetch(`${devnet.url}/trx/${path}`, { method: 'POST', body: JSON.stringify(body) })).json() as Promise<T>
const mine = (blocks = 1) => devnet.control<{ height: number; hash: string }>({ command: 'mine', network: 'TRX', blocks })
const fund = (asset: string, name: string, amount: string) =>
  devnet.control<{ hash: string }>({ command: 'fund', asset, address: addressOf(name), amount })
const infoOf = (id: string) => post<Info>('wallet/gettransactioninfobyid', { value: id })
const balanceOf = async (name: string) =>
  Number((await post('wallet/getaccount', { address: TronWeb.address.toHex(addressOf(name)) }))['balance'] ?? 0)
const headTime = async () =>
  (await post<{ block_header: { raw_data: { timestamp: number } } }>('wallet/getnowblock')).block_header.raw_data.timestamp
const text = (hex: unknown) => Buffer.from(String(hex), 'hex').toString('utf8')

async function tokensOf(name: string, token = USDT): Promise<number> {
  const answer = await post<{ constant_result: string[] }>('wallet/triggerconstantcontract', {
    owner_address: addressOf(name), contract_address: token, function_selector: 'balanceOf(address)',
    parameter: TronWeb.address.toHex(addressOf(name)).slice(2).padStart(64, '0'), visible: true,
  })
  return Number(`0x${answer.constant_result[0]}`)
}

/** Signs, broadcasts and mines; the answer of the broadcast and what became of it. */
async function send(name: string, unsigned: Promise<unknown> | unknown): Promise<{ id: string; answer: Json; info: Info }> {
  const tw = client(secretOf(name))
  const signed = await tw.trx.sign((await unsigned) as Unsigned)
  const answer = await post('wallet/broadcasttransaction', signed as unknown as Json)
  if (answer['result'] === true) await mine()
  return { id: (signed as Unsigned).txID, answer, info: await infoOf((signed as Unsigned).txID) }
}

async function transferToken(
  name: string, to: string, amount: number, feeLimit = 50 * SUN, token = USDT
): Promise<{ id: string; answer: Json; info: Info }> {
  const tw = client(secretOf(name))
  const { transaction } = await tw.transactionBuilder.triggerSmartContract(
    token, 'transfer(address,uint256)', { feeLimit },
    [
      { type: 'address', value: addressOf(to) }, { type: 'uint256', value: amount },
    ],
    addressOf(name)
  )
  return send(name, transaction)
}

test('a transfer of TRX: activation costs 1.1 TRX, the next one only free bandwidth, and both become final', async () => {
  await fund('TRX', 'alice', '1000')
  assert.equal(await balanceOf('alice'), 1000 * SUN)
  const tw = client(secretOf('alice'))
  const first = await tw.trx.sendTransaction(addressOf('bob'), 5 * SUN)
  assert.equal(first.result, true)
  await mine()
  assert.equal(await balanceOf('bob'), 5 * SUN)
  assert.equal(await balanceOf('alice'), 1000 * SUN - 5 * SUN - 1_100_000)
  const info = await infoOf(first.txid)
  assert.deepEqual([info.fee, info.receipt?.net_fee, info.receipt?.net_usage], [1_100_000, 100_000, undefined])
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

test('600 points of bandwidth are free, then bytes are burnt at 1000 sun, and after a day they are free again', async () => {
  await fund('TRX', 'carol', '100')
  const pay = async () =>
    (await send('carol', client(secretOf('carol')).transactionBuilder.sendTrx(addressOf('bob'), 1, addressOf('carol')))).info
  const [one, two, three] = [await pay(), await pay(), await pay()]
  assert.deepEqual([one.fee, two.fee], [undefined, undefined])
  assert.equal(three.fee, three.receipt?.net_fee)
  assert.ok(three.fee! >= 264_000 && three.fee! <= 268_000, String(three.fee))
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+1d' })
  assert.equal((await pay()).fee, undefined)
})

test('the same again is a duplicate, waiting or mined', async () => {
  const tw = client(secretOf('alice'))
  const signed = await tw.trx.sign(await tw.transactionBuilder.sendTrx(addressOf('bob'), 7, addressOf('alice')))
  assert.equal((await tw.trx.sendRawTransaction(signed)).result, true)
  const before = await tw.trx.sendRawTransaction(signed)
  await mine()
  const bob = await balanceOf('bob')
  const after = await tw.trx.sendRawTransaction(signed)
  assert.deepEqual([before.code, after.code], ['DUP_TRANSACTION_ERROR', 'DUP_TRANSACTION_ERROR'])
  const hex = await tw.trx.sendHexTransaction(
    Buffer.concat([
      Buffer.from([0x0a, ...varint(signed.raw_data_hex.length / 2)]), Buffer.from(signed.raw_data_hex, 'hex'), Buffer.from([0x12, 65]),
      Buffer.from(signed.signature[0]!, 'hex'),
    ]).toString('hex')
  )
  assert.equal(hex.code, 'DUP_TRANSACTION_ERROR')
  await mine()
  assert.equal(await balanceOf('bob'), bob)
})

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, value >> 7]
}

test('a signature of another key, of other bytes, or none at all is refused', async () => {
  const tw = client(secretOf('alice'))
  const unsigned = await tw.transactionBuilder.sendTrx(addressOf('bob'), 9, addressOf('alice'))
  const signed = await tw.trx.sign(structuredClone(unsigned))
  const codeOf = async (change: Json) => (await post('wallet/broadcasttransaction', { ...(signed as unknown as Json), ...change }))['code']
  const other = utils.crypto.ECKeySign(Buffer.from(unsigned.txID, 'hex') as never, Buffer.from(secretOf('mallory'), 'hex') as never)
  assert.equal(await codeOf({ signature: [other] }), 'SIGERROR')
  assert.equal(await codeOf({ signature: [] }), 'SIGERROR')
  assert.equal(await codeOf({ signature: ['00'.repeat(65)] }), 'SIGERROR')
  assert.equal(await codeOf({ signature: [signed.signature[0]!.slice(2)] }), 'SIGERROR')
  assert.equal(await codeOf({ signature: [signed.signature[0], signed.signature[0]] }), 'SIGERROR')
  // Other bytes under the same id, and the same bytes under another.
  const dearer = await tw.transactionBuilder.sendTrx(addressOf('bob'), 10, addressOf('alice'))
  assert.match(
    String((await post('wallet/broadcasttransaction', { ...(signed as unknown as Json), raw_data_hex: dearer.raw_data_hex }))['Error']),
    /txID/
  )
  assert.equal(await codeOf({ raw_data_hex: dearer.raw_data_hex, txID: dearer.txID }), 'SIGERROR')
})

test('expired, living too long, or referring to a block that is not there', async () => {
  const tw = client(secretOf('alice'))
  const header = await tw.trx.getCurrentRefBlockParams()
  const now = await headTime()
  const codeOf = async (change: Json) => {
    const blockHeader = { ...header, timestamp: now, ...change }
    return (await send('alice', tw.transactionBuilder.sendTrx(addressOf('bob'), 11, addressOf('alice'), { blockHeader } as never))).answer[
      'code'
    ]
  }
  assert.equal(await codeOf({ expiration: now }), 'TRANSACTION_EXPIRATION_ERROR')
  assert.equal(await codeOf({ expiration: now + DAY_MS + 60_000 }), 'TRANSACTION_EXPIRATION_ERROR')
  assert.equal(await codeOf({ expiration: now + 60_000, ref_block_hash: '00'.repeat(8) }), 'TAPOS_ERROR')
  assert.equal(await codeOf({ expiration: now + 60_000, ref_block_bytes: 'ffff' }), 'TAPOS_ERROR')
  assert.equal(await codeOf({ expiration: now + 600_000 }), undefined)
})

test('what the accounts do not allow is refused with a reason', async () => {
  const tw = client(secretOf('alice'))
  const wordsOf = async (name: string, unsigned: Promise<unknown>) => {
    const { answer } = await send(name, unsigned)
    return [answer['code'], text(answer['message'])]
  }
  const [code, words] = await wordsOf('alice', tw.transactionBuilder.sendTrx(addressOf('bob'), 10 ** 15, addressOf('alice')))
  assert.deepEqual([code, /balance is not sufficient/.test(String(words))], ['CONTRACT_VALIDATE_ERROR', true])
  assert.match(
    (await wordsOf('nobody', client(secretOf('nobody')).transactionBuilder.sendTrx(addressOf('bob'), 1, addressOf('nobody')))).join(' '),
    /VALIDATE.*does not exist/
  )
  assert.match((await wordsOf('alice', tw.transactionBuilder.sendTrx(USDT, 1, addressOf('alice')))).join(' '), /smartContract/)
})

test('TRC-20 by tronweb\'s contract object: energy at 100 sun, about 130,000 to a new holder and 64,000 to another', async () => {
  await fund('USDT_TRX', 'alice', '1000')
  const tw = client(secretOf('alice'))
  const contract = await tw.contract().at(USDT)
  assert.equal(await contract['balanceOf']!(addressOf('alice')).call(), 1_000_000_000n)
  const before = await balanceOf('alice')
  const id = (await contract['transfer']!(addressOf('bob'), 250_000).send({ feeLimit: 50 * SUN })) as string
  await mine()
  const first = await infoOf(id)
  assert.deepEqual([first.receipt?.result, first.log?.length, await tokensOf('bob')], ['SUCCESS', 1, 250_000])
  assert.ok(Math.abs(first.receipt!.energy_usage_total! - 130_300) < 500, String(first.receipt?.energy_usage_total))
  assert.equal(first.receipt?.energy_fee, first.receipt!.energy_usage_total! * 100)
  assert.equal(before - (await balanceOf('alice')), first.fee)
  const second = await transferToken('alice', 'bob', 1)
  assert.ok(Math.abs(second.info.receipt!.energy_usage_total! - 64_300) < 500, String(second.info.receipt?.energy_usage_total))
  await fund('USDC_TRX', 'alice', '5')
  const [usdc, more] = [await transferToken('alice', 'bob', 5, 50 * SUN, USDC), await transferToken('alice', 'bob', 5, 50 * SUN, USDC)]
  assert.deepEqual([usdc.info.receipt?.result, more.info.receipt?.result], ['SUCCESS', 'SUCCESS'])
  assert.ok(usdc.info.receipt!.energy_usage_total! < 30_000 && more.info.receipt!.energy_usage_total! < 12_000, 'no penalty')
  assert.equal(await tokensOf('bob', USDC), 10)
})

test('the estimate is what the transfer takes', async () => {
  const parameter = `${TronWeb.address.toHex(addressOf('dave')).slice(2).padStart(64, '0')}${(77).toString(16).padStart(64, '0')}`
  const { energy_used: estimated } = await post<{ energy_used: number }>('wallet/triggerconstantcontract', {
    owner_address: TronWeb.address.toHex(addressOf('alice')), contract_address: TronWeb.address.toHex(USDT),
    function_selector: 'transfer(address,uint256)', parameter,
  })
  assert.equal((await transferToken('alice', 'dave', 77)).info.receipt?.energy_usage_total, estimated)
})

test('a fee limit that is too low: out of energy, all of it is paid, and nothing moves', async () => {
  const [tokens, sun] = [await tokensOf('alice'), await balanceOf('alice')]
  const { info, id } = await transferToken('alice', 'erin', 1, 5 * SUN)
  assert.deepEqual([info.result, info.receipt?.result, info.receipt?.energy_fee], ['FAILED', 'OUT_OF_ENERGY', 5 * SUN])
  assert.equal((await client(secretOf('alice')).trx.getUnconfirmedTransactionInfo(id)).result, 'FAILED')
  assert.deepEqual([await tokensOf('alice'), await tokensOf('erin')], [tokens, 0])
  assert.equal(sun - (await balanceOf('alice')), info.fee)
})

test('more than the balance reverts, and what was done is paid', async () => {
  const { info } = await transferToken('erin-has-none', 'bob', 1).catch(() => ({ info: {} as Info }))
  assert.equal(info.id, undefined)
  const { info: reverted } = await transferToken('alice', 'bob', 10 ** 15)
  assert.deepEqual([reverted.result, reverted.receipt?.result, reverted.log], ['FAILED', 'REVERT', undefined])
  assert.ok(reverted.receipt!.energy_usage_total! > 0 && reverted.receipt!.energy_usage_total! < 64_000)
})

test('staked TRX pays for energy and bandwidth: no fee at all', async () => {
  await fund('TRX', 'staker', '30000')
  await fund('USDT_TRX', 'staker', '10')
  const tw = client(secretOf('staker'))
  const frozen = await send('staker', tw.transactionBuilder.freezeBalanceV2(10_000 * SUN, 'ENERGY', addressOf('staker')))
  assert.equal(frozen.answer['result'], true)
  await send('staker', tw.transactionBuilder.freezeBalanceV2(1000 * SUN, 'BANDWIDTH', addressOf('staker')))
  const resources = await tw.trx.getAccountResources(addressOf('staker'))
  // 10,000 of 19,000,010,000 TRX of 180,000,000,000 a day.
  assert.deepEqual([resources.EnergyLimit, resources.NetLimit], [94_736, 1727])
  const { info } = await transferToken('staker', 'bob', 1)
  assert.deepEqual(
    [info.receipt?.result, info.fee, info.receipt?.energy_fee, info.receipt?.net_usage], ['SUCCESS', undefined, undefined, 345]
  )
  assert.equal(info.receipt?.energy_usage, info.receipt?.energy_usage_total)
  const used = (await tw.trx.getAccountResources(addressOf('staker'))).EnergyUsed
  assert.ok(Math.abs(used - info.receipt!.energy_usage_total!) < 10, String(used))
  // What is left of the day pays a part of the next.
  const next = await transferToken('staker', 'bob', 1)
  assert.ok(next.info.receipt!.energy_usage! > 30_000 && next.info.receipt!.energy_fee! > 3 * SUN, JSON.stringify(next.info.receipt))
  // fee_limit caps staked energy too.
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+1d' })
  assert.equal((await transferToken('staker', 'bob', 1, SUN)).info.receipt?.result, 'OUT_OF_ENERGY')
})

test('energy is lent to an account that has none, used there, and taken back', async () => {
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+1d' })
  const tw = client(secretOf('staker'))
  await fund('TRX', 'poor', '1')
  await fund('USDT_TRX', 'poor', '3')
  const max = await post<{ max_size: number }>('wallet/getcandelegatedmaxsize', {
    owner_address: addressOf('staker'), type: 1, visible: true,
  })
  assert.equal(max.max_size, 10_000 * SUN)
  assert.match(
    text(
      (await send('staker', tw.transactionBuilder.delegateResource(10_001 * SUN, addressOf('poor'), 'ENERGY', addressOf('staker')))).answer[
        'message'
      ]
    ),
    /less than or equal to available/
  )
  assert.equal(
    (await send('staker', tw.transactionBuilder.delegateResource(9000 * SUN, addressOf('poor'), 'ENERGY', addressOf('staker')))).answer[
      'result'
    ],
    true
  )
  const lent = await post<{ delegatedResource: Json[] }>('wallet/getdelegatedresourcev2', {
    fromAddress: addressOf('staker'), toAddress: addressOf('poor'), visible: true,
  })
  assert.equal(lent.delegatedResource[0]?.['frozen_balance_for_energy'], 9000 * SUN)
  const { info } = await transferToken('poor', 'bob', 3)
  assert.deepEqual([info.receipt?.result, info.fee], ['SUCCESS', undefined])
  assert.equal(
    (await send('staker', tw.transactionBuilder.undelegateResource(9000 * SUN, addressOf('poor'), 'ENERGY', addressOf('staker')))).answer[
      'result'
    ],
    true
  )
  assert.equal((await tw.trx.getAccountResources(addressOf('poor'))).EnergyLimit, undefined)
  // The use came back with the stake.
  assert.ok((await tw.trx.getAccountResources(addressOf('staker'))).EnergyUsed >= info.receipt!.energy_usage! - 20)
  assert.match(
    text(
      (await send('staker', tw.transactionBuilder.undelegateResource(SUN, addressOf('poor'), 'ENERGY', addressOf('staker')))).answer[
        'message'
      ]
    ),
    /does not exist/
  )
})

test('at most 32 unfreezes wait; after 14 days, moved by the clock, they can be withdrawn', async () => {
  await fund('TRX', 'miser', '1000')
  const tw = client(secretOf('miser'))
  const unfreeze = (amount: number) => tw.transactionBuilder.unfreezeBalanceV2(amount, 'BANDWIDTH', addressOf('miser'))
  await send('miser', tw.transactionBuilder.freezeBalanceV2(100 * SUN, 'BANDWIDTH', addressOf('miser')))
  for (let count = 1; count <= 32; count += 1) {
    const answer = await tw.trx.sendRawTransaction(await tw.trx.sign(await unfreeze(SUN + count)))
    assert.equal(answer.result, true, `unfreeze ${count}: ${text(answer.message)}`)
  }
  await mine()
  const refused = (await send('miser', unfreeze(SUN))).answer
  assert.deepEqual([refused['code'], /times is over limit/.test(text(refused['message']))], ['CONTRACT_VALIDATE_ERROR', true])
  assert.equal((await tw.trx.getAvailableUnfreezeCount(addressOf('miser'))).count, undefined)
  const withdrawal = async () => text(
    (await send('miser', tw.transactionBuilder.withdrawExpireUnfreeze(addressOf('miser')))).answer['message']
  )
  assert.match(await withdrawal(), /no unFreeze balance/)
  const before = await headTime()
  const moved = await devnet.control<{ time: number }>({ command: 'clock', network: 'TRX', advance: '+13d' })
  assert.ok(moved.time - before >= 13 * DAY_MS && moved.time - before < 13 * DAY_MS + 60_000)
  assert.match(await withdrawal(), /no unFreeze balance/)
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+1d' })
  const total = 32 * SUN + (32 * 33) / 2
  assert.equal((await tw.trx.getCanWithdrawUnfreezeAmount(addressOf('miser'), await headTime())).amount, total)
  const sun = await balanceOf('miser')
  const { info } = await send('miser', tw.transactionBuilder.withdrawExpireUnfreeze(addressOf('miser')))
  assert.equal(info.withdraw_expire_amount, total)
  assert.equal((await balanceOf('miser')) - sun, total - (info.fee ?? 0))
})

test('an unfreeze also withdraws what has matured', async () => {
  const tw = client(secretOf('miser'))
  await send('miser', tw.transactionBuilder.unfreezeBalanceV2(2 * SUN, 'BANDWIDTH', addressOf('miser')))
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+14d' })
  const { info } = await send('miser', tw.transactionBuilder.unfreezeBalanceV2(3 * SUN, 'BANDWIDTH', addressOf('miser')))
  assert.equal(info.withdraw_expire_amount, 2 * SUN)
})

test('the limits of staking are Tron\'s', async () => {
  const tw = client(secretOf('miser'))
  const words = async (unsigned: Promise<unknown>) => text((await send('miser', unsigned)).answer['message'])
  assert.match(
    await words(
      post('wallet/freezebalancev2', {
        owner_address: TronWeb.address.toHex(addressOf('miser')), frozen_balance: SUN - 1, resource: 'ENERGY',
      })
    ),
    /greater than or equal to 1 TRX/
  )
  assert.match(
    await words(tw.transactionBuilder.freezeBalanceV2(10 ** 12, 'ENERGY', addressOf('miser'))),
    /less than or equal to accountBalance/
  )
  assert.match(await words(tw.transactionBuilder.unfreezeBalanceV2(SUN, 'ENERGY', addressOf('miser'))), /no frozenBalance\(ENERGY\)/)
})

test('faults: a broadcast that is lost, one whose answer is lost, a node that is down', async () => {
  const tw = client(secretOf('alice'))
  const fault = (mode: string) => devnet.control({ command: 'fault', network: 'TRX', mode })
  const signed = async (amount: number) =>
    (await tw.trx.sign(await tw.transactionBuilder.sendTrx(addressOf('bob'), amount, addressOf('alice')))) as unknown as Json
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

test('a reorganisation takes blocks back that are not final, and no deeper', async () => {
  await mine(3)
  const { id, info } = await transferToken('alice', 'bob', 4)
  const tokens = await tokensOf('bob')
  const before = await post<{ blockID: string }>('wallet/getblockbynum', { num: info.blockNumber! })
  await assert.rejects(devnet.control({ command: 'reorg', network: 'TRX', depth: 3 }), /final/)
  await devnet.control({ command: 'reorg', network: 'TRX', depth: 1, drop: true })
  assert.equal((await infoOf(id)).id, undefined)
  assert.notEqual((await post<{ blockID: string }>('wallet/getblockbynum', { num: info.blockNumber! })).blockID, before.blockID)
  assert.equal(await tokensOf('bob'), tokens - 4)
  const again = await transferToken('alice', 'bob', 4)
  await devnet.control({ command: 'reorg', network: 'TRX', depth: 1 })
  await mine()
  assert.equal((await infoOf(again.id)).receipt?.result, 'SUCCESS')
  assert.equal(await tokensOf('bob'), tokens)
})

type Shown = { ids: string[]; time: number; sun: number; usdt: number; usdc: number; resources: unknown }

async function shown(upTo: number): Promise<Shown> {
  const ids: string[] = []
  for (let num = 0; num <= upTo; num += 1) ids.push((await post<{ blockID: string }>('wallet/getblockbynum', { num })).blockID)
  return {
    ids, time: 0, sun: await balanceOf('bob'), usdt: await tokensOf('bob'), usdc: await tokensOf('bob', USDC),
    resources: await post('wallet/getaccount', { address: addressOf('staker') }),
  }
}

test('a killed engine comes back with the same balances', async () => {
  const tokens = await tokensOf('bob')
  process.kill(Number(readFileSync(join(home, 'trx', 'tvm.pid'), 'utf8').split('\n')[0]), 'SIGKILL')
  await until('the contract answers again', () => tokensOf('bob').then((now) => now === tokens, () => false))
  assert.equal((await transferToken('alice', 'bob', 6)).info.receipt?.result, 'SUCCESS')
  assert.equal(await tokensOf('bob'), tokens + 6)
})

test('nothing is lost but what is burnt', async () => {
  const names = ['one', 'two', 'three']
  for (const name of names) await fund('TRX', name, '100')
  const held = async () => {
    let sum = 0
    for (const name of names) {
      const account = await post<{
        balance?: number
        frozenV2: { amount?: number }[]
        unfrozenV2?: { unfreeze_amount: number }[]
        delegated_frozenV2_balance_for_bandwidth?: number
        account_resource: { delegated_frozenV2_balance_for_energy?: number }
      }>('wallet/getaccount', { address: addressOf(name) })
      sum +=
        (account.balance ?? 0) +
        (account.delegated_frozenV2_balance_for_bandwidth ?? 0) +
        (account.account_resource?.delegated_frozenV2_balance_for_energy ?? 0)
      for (const { amount } of account.frozenV2) sum += amount ?? 0
      for (const { unfreeze_amount } of account.unfrozenV2 ?? []) sum += unfreeze_amount
    }
    return sum
  }
  let expected = await held()
  const done = new Set<number>()
  const builder = (name: string) => client(secretOf(name)).transactionBuilder
  // The same every time, and without a pattern.
  const chance = (step: number, what: string, of: number) => createHash('sha256').update(`${what} ${step}`).digest().readUInt32BE() % of
  for (let step = 0; step < 80; step += 1) {
    const at = chance(step, 'who', 3)
    const [name, other] = [names[at]!, names[(at + 1 + chance(step, 'whom', 2)) % 3]!]
    const [from, to] = [addressOf(name), addressOf(other)]
    const resource = chance(step, 'what', 4) === 0 ? 'BANDWIDTH' : 'ENERGY'
    const kind = chance(step, 'how', 6)
    const unsigned = [
      () => builder(name).freezeBalanceV2((1 + chance(step, 'much', 9)) * SUN, resource, from),
      () => builder(name).sendTrx(to, 1 + step, from), () => builder(name).delegateResource(SUN + step, to, resource, from),
      () => builder(name).unfreezeBalanceV2(SUN, resource, from), () => builder(name).undelegateResource(SUN, to, resource, from),
      () => builder(name).withdrawExpireUnfreeze(from),
    ][kind]!
    const { info } = await send(name, unsigned())
    if (info.id !== undefined) done.add(kind)
    expected -= info.fee ?? 0
    assert.equal(await held(), expected, `step ${step}`)
    if (step % 20 === 19) await devnet.control({ command: 'clock', network: 'TRX', advance: '+8d' })
  }
  assert.deepEqual([...done].sort(), [0, 1, 2, 3, 4, 5], 'one of each was taken')
})

test('after kill -9 every block has the same id, every balance is there, and the clock stays moved', async () => {
  const { height } = await mine()
  const before = await shown(height)
  const time = await headTime()
  await devnet.killAll()
  // The beginning of a record that was never finished.
  appendFileSync(join(home, 'trx', 'blocks.journal'), readFileSync(join(home, 'trx', 'blocks.journal')).subarray(0, 40))
  devnet = await startDevnet(home, { port })
  assert.deepEqual(await shown(height), before)
  await mine()
  assert.ok((await headTime()) > time && (await headTime()) > Date.now() + 28 * DAY_MS)
  assert.equal((await transferToken('alice', 'bob', 6)).info.receipt?.result, 'SUCCESS')
  assert.equal(await tokensOf('bob'), before.usdt + 6)
})

test('a kill while blocks are made loses nothing that was shown', async () => {
  const seen: [number, string][] = []
  const state = { stopped: false }
  const watch = async () => {
    while (!state.stopped) {
      const {
        blockID,
        block_header: {
          raw_data: { number },
        },
      } = await post<{ blockID: string; block_header: { raw_data: { number: number } } }>('wallet/getnowblock')
      seen.push([number, blockID])
    }
  }
  const work = Promise.allSettled([
    watch(), ...Array.from({ length: 30 }, () => fund('USDT_TRX', 'bob', '1')), ...Array.from({ length: 30 }, () => mine(3)),
  ])
  await new Promise((resolve) => setTimeout(resolve, 400))
  await devnet.killAll()
  state.stopped = true
  await work
  devnet = await startDevnet(home, { port })
  assert.ok(seen.length > 0)
  for (const [num, id] of seen) assert.equal((await post<{ blockID: string }>('wallet/getblockbynum', { num })).blockID, id)
})

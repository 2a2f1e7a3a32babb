// Stakes on the local Tron chain: the resources they provide, delegation, and their return.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { TronWeb } from 'tronweb'
import {
  addressOf,
  balanceOf,
  client,
  DAY_MS,
  devnet,
  fund,
  headTime,
  home,
  mine,
  post,
  restart,
  secretOf,
  send,
  SUN,
  text,
  tokensOf,
  useTron,
  transferToken,
  USDC,
  type Json,
} from '../../testing/tron-support.ts'

const running = useTron()

// Funds bob with the tokens first, so that a transfer to bob does not create a new token holder.
before(async () => {
  await running
  for (const asset of ['TRX', 'USDT_TRX', 'USDC_TRX']) await fund(asset, 'bob', '10')
})

test('staked TRX pays for energy and bandwidth, so transfers cost no fee', async () => {
  await fund('TRX', 'staker', '30000')
  await fund('USDT_TRX', 'staker', '10')
  const tw = client(secretOf('staker'))
  const frozen = await send(
    'staker',
    tw.transactionBuilder.freezeBalanceV2(10_000 * SUN, 'ENERGY', addressOf('staker')),
  )
  assert.equal(frozen.answer['result'], true)
  await send(
    'staker',
    tw.transactionBuilder.freezeBalanceV2(1000 * SUN, 'BANDWIDTH', addressOf('staker')),
  )
  const resources = await tw.trx.getAccountResources(addressOf('staker'))
  // 10,000 of 19,000,010,000 TRX of 180,000,000,000 a day.
  assert.deepEqual([resources.EnergyLimit, resources.NetLimit], [94_736, 1727])
  const { info } = await transferToken('staker', 'bob', 1)
  assert.deepEqual(
    [info.receipt?.result, info.fee, info.receipt?.energy_fee, info.receipt?.net_usage],
    ['SUCCESS', undefined, undefined, 345],
  )
  assert.equal(info.receipt?.energy_usage, info.receipt?.energy_usage_total)
  const used = (await tw.trx.getAccountResources(addressOf('staker'))).EnergyUsed
  assert.ok(Math.abs(used - info.receipt!.energy_usage_total!) < 10, String(used))
  // The unused part of the day's energy pays for part of the next transfer.
  const next = await transferToken('staker', 'bob', 1)
  assert.ok(
    next.info.receipt!.energy_usage! > 30_000 && next.info.receipt!.energy_fee! > 3 * SUN,
    JSON.stringify(next.info.receipt),
  )
  // fee_limit also limits energy from stakes.
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+1d' })
  assert.equal((await transferToken('staker', 'bob', 1, SUN)).info.receipt?.result, 'OUT_OF_ENERGY')
})

test('delegated energy can be used by an account that has no energy, and reclaimed', async () => {
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+1d' })
  const tw = client(secretOf('staker'))
  await fund('TRX', 'poor', '1')
  await fund('USDT_TRX', 'poor', '3')
  const max = await post<{ max_size: number }>('wallet/getcandelegatedmaxsize', {
    owner_address: addressOf('staker'),
    type: 1,
    visible: true,
  })
  assert.equal(max.max_size, 10_000 * SUN)
  assert.match(
    text(
      (
        await send(
          'staker',
          tw.transactionBuilder.delegateResource(
            10_001 * SUN,
            addressOf('poor'),
            'ENERGY',
            addressOf('staker'),
          ),
        )
      ).answer['message'],
    ),
    /less than or equal to available/,
  )
  assert.equal(
    (
      await send(
        'staker',
        tw.transactionBuilder.delegateResource(
          9000 * SUN,
          addressOf('poor'),
          'ENERGY',
          addressOf('staker'),
        ),
      )
    ).answer['result'],
    true,
  )
  const lent = await post<{ delegatedResource: Json[] }>('wallet/getdelegatedresourcev2', {
    fromAddress: addressOf('staker'),
    toAddress: addressOf('poor'),
    visible: true,
  })
  assert.equal(lent.delegatedResource[0]?.['frozen_balance_for_energy'], 9000 * SUN)
  const { info } = await transferToken('poor', 'bob', 3)
  assert.deepEqual([info.receipt?.result, info.fee], ['SUCCESS', undefined])
  assert.equal(
    (
      await send(
        'staker',
        tw.transactionBuilder.undelegateResource(
          9000 * SUN,
          addressOf('poor'),
          'ENERGY',
          addressOf('staker'),
        ),
      )
    ).answer['result'],
    true,
  )
  assert.equal((await tw.trx.getAccountResources(addressOf('poor'))).EnergyLimit, undefined)
  // The energy used is attributed to the owner when the stake is returned.
  assert.ok(
    (await tw.trx.getAccountResources(addressOf('staker'))).EnergyUsed >=
      info.receipt!.energy_usage! - 20,
  )
  assert.match(
    text(
      (
        await send(
          'staker',
          tw.transactionBuilder.undelegateResource(
            SUN,
            addressOf('poor'),
            'ENERGY',
            addressOf('staker'),
          ),
        )
      ).answer['message'],
    ),
    /does not exist/,
  )
})

test('allows 32 pending unfreezes, and their withdrawal after 14 days', async () => {
  await fund('TRX', 'miser', '1000')
  const tw = client(secretOf('miser'))
  const unfreeze = (amount: number) =>
    tw.transactionBuilder.unfreezeBalanceV2(amount, 'BANDWIDTH', addressOf('miser'))
  await send(
    'miser',
    tw.transactionBuilder.freezeBalanceV2(100 * SUN, 'BANDWIDTH', addressOf('miser')),
  )
  for (let count = 1; count <= 32; count += 1) {
    const answer = await tw.trx.sendRawTransaction(await tw.trx.sign(await unfreeze(SUN + count)))
    assert.equal(answer.result, true, `unfreeze ${count}: ${text(answer.message)}`)
  }
  await mine()
  const refused = (await send('miser', unfreeze(SUN))).answer
  assert.deepEqual(
    [refused['code'], /times is over limit/.test(text(refused['message']))],
    ['CONTRACT_VALIDATE_ERROR', true],
  )
  assert.equal((await tw.trx.getAvailableUnfreezeCount(addressOf('miser'))).count, undefined)
  const withdrawal = async () =>
    text(
      (await send('miser', tw.transactionBuilder.withdrawExpireUnfreeze(addressOf('miser'))))
        .answer['message'],
    )
  assert.match(await withdrawal(), /no unFreeze balance/)
  const before = await headTime()
  const moved = await devnet.control<{ time: number }>({
    command: 'clock',
    network: 'TRX',
    advance: '+13d',
  })
  assert.ok(moved.time - before >= 13 * DAY_MS && moved.time - before < 13 * DAY_MS + 60_000)
  assert.match(await withdrawal(), /no unFreeze balance/)
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+1d' })
  const total = 32 * SUN + (32 * 33) / 2
  assert.equal(
    (await tw.trx.getCanWithdrawUnfreezeAmount(addressOf('miser'), await headTime())).amount,
    total,
  )
  const sun = await balanceOf('miser')
  const { info } = await send(
    'miser',
    tw.transactionBuilder.withdrawExpireUnfreeze(addressOf('miser')),
  )
  assert.equal(info.withdraw_expire_amount, total)
  assert.equal((await balanceOf('miser')) - sun, total - (info.fee ?? 0))
})

test('an unfreeze also withdraws expired unfreezes', async () => {
  const tw = client(secretOf('miser'))
  await send(
    'miser',
    tw.transactionBuilder.unfreezeBalanceV2(2 * SUN, 'BANDWIDTH', addressOf('miser')),
  )
  await devnet.control({ command: 'clock', network: 'TRX', advance: '+14d' })
  const { info } = await send(
    'miser',
    tw.transactionBuilder.unfreezeBalanceV2(3 * SUN, 'BANDWIDTH', addressOf('miser')),
  )
  assert.equal(info.withdraw_expire_amount, 2 * SUN)
})

test('staking has the same limits as on Tron', async () => {
  const tw = client(secretOf('miser'))
  const words = async (unsigned: Promise<unknown>) =>
    text((await send('miser', unsigned)).answer['message'])
  assert.match(
    await words(
      post('wallet/freezebalancev2', {
        owner_address: TronWeb.address.toHex(addressOf('miser')),
        frozen_balance: SUN - 1,
        resource: 'ENERGY',
      }),
    ),
    /greater than or equal to 1 TRX/,
  )
  assert.match(
    await words(tw.transactionBuilder.freezeBalanceV2(10 ** 12, 'ENERGY', addressOf('miser'))),
    /less than or equal to accountBalance/,
  )
  assert.match(
    await words(tw.transactionBuilder.unfreezeBalanceV2(SUN, 'ENERGY', addressOf('miser'))),
    /no frozenBalance\(ENERGY\)/,
  )
})

type AccountJson = {
  ids: string[]
  time: number
  sun: number
  usdt: number
  usdc: number
  resources: unknown
}

async function shown(upTo: number): Promise<AccountJson> {
  const ids: string[] = []
  for (let num = 0; num <= upTo; num += 1)
    ids.push((await post<{ blockID: string }>('wallet/getblockbynum', { num })).blockID)
  return {
    ids,
    time: 0,
    sun: await balanceOf('bob'),
    usdt: await tokensOf('bob'),
    usdc: await tokensOf('bob', USDC),
    resources: await post('wallet/getaccount', { address: addressOf('staker') }),
  }
}

test('only burnt fees reduce the total of all balances', async () => {
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
  // Returns a reproducible pseudorandom decision.
  const chance = (step: number, what: string, of: number) =>
    createHash('sha256').update(`${what} ${step}`).digest().readUInt32BE() % of
  for (let step = 0; step < 80; step += 1) {
    const at = chance(step, 'who', 3)
    const [name, other] = [names[at]!, names[(at + 1 + chance(step, 'whom', 2)) % 3]!]
    const [from, to] = [addressOf(name), addressOf(other)]
    const resource = chance(step, 'what', 4) === 0 ? 'BANDWIDTH' : 'ENERGY'
    const kind = chance(step, 'how', 6)
    const unsigned = [
      () => builder(name).freezeBalanceV2((1 + chance(step, 'much', 9)) * SUN, resource, from),
      () => builder(name).sendTrx(to, 1 + step, from),
      () => builder(name).delegateResource(SUN + step, to, resource, from),
      () => builder(name).unfreezeBalanceV2(SUN, resource, from),
      () => builder(name).undelegateResource(SUN, to, resource, from),
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

test('after kill -9 all block ids and balances are the same, and the clock stays advanced', async () => {
  const { height } = await mine()
  const before = await shown(height)
  const time = await headTime()
  await devnet.killAll()
  // Appends the beginning of a record that was never completed.
  appendFileSync(
    join(home, 'trx', 'blocks.journal'),
    readFileSync(join(home, 'trx', 'blocks.journal')).subarray(0, 40),
  )
  await restart()
  assert.deepEqual(await shown(height), before)
  await mine()
  assert.ok((await headTime()) > time && (await headTime()) > Date.now() + 28 * DAY_MS)
  assert.equal((await transferToken('staker', 'bob', 6)).info.receipt?.result, 'SUCCESS')
  assert.equal(await tokensOf('bob'), before.usdt + 6)
})

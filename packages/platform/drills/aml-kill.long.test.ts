import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  rpc,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/** Kills the platform at every commit of screening, holding and releasing. */
const platform = new TestPlatform()
let user: User
let counter = 0
const freshAddress = () => `0x${(++counter).toString(16).padStart(40, 'f')}`
const risk = (address: string, level: string) =>
  platform.operator('devnet', { command: 'risk', address, level })
const unfreeze = (address: string) =>
  call<{ code?: string }>(user, 'POST', '/dac/v1/unfreeze-address', { asset: 'ETH', address })

before(async () => {
  await platform.start()
  user = await platform.user('aml-kill')
})
after(() => platform.remove())

async function dieAt(checkpoint: string, work: () => Promise<unknown>): Promise<void> {
  await platform.dieAt(checkpoint, work)
  user.base = platform.base
}

const state = async (id: string) =>
  (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`)).body.sub_status

test('pays a flagged transfer once if the process is killed at any step of its screening', async () => {
  await fundedWallet(platform, user, 'ETH', '20')
  assert.equal(
    (
      await call(user, 'POST', '/dac/v1/aml', {
        provider: 'CHAINALYSIS',
        aml_token: 'sandbox',
        aml_risk_levels: 'SEVERE',
        aml_deposit: true,
        aml_withdrawal: true,
      })
    ).status,
    200,
  )
  for (const checkpoint of [
    'transaction.screening',
    'transaction.held',
    'aml.unfrozen',
    'transaction.released',
    'transaction.screened',
  ]) {
    const to = freshAddress()
    await risk(to, 'SEVERE')
    const body = transferBody('ETH', '1', to, { sequence_id: checkpoint })
    const post = () => call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
    const early = checkpoint === 'transaction.screening' || checkpoint === 'transaction.held'
    if (early) await dieAt(checkpoint, post)
    const { id } = (await post()).body
    await waitFor('held', async () => (await state(id)) === 'AML_HELD')
    if (!early) await dieAt(checkpoint, () => unfreeze(to))
    // Whether or not the response was lost, the address is unfrozen exactly once.
    const again = await unfreeze(to)
    assert.equal(again.status, early ? 200 : 400, again.text)
    await assertConfirmed(user, id)
    assert.equal(
      BigInt(await rpc<string>(platform, 'ETH', 'eth_getBalance', [to, 'latest'])),
      10n ** 18n,
    )
  }
})

test('credits a flagged deposit once if the process is killed at any step of its screening', async () => {
  const address = (await call<{ address: string }[]>(user, 'GET', '/dac/v1/addresses?asset=ETH'))
    .body[0]?.address as string
  const deposits = async () =>
    (await call<{ data: Transfer[] }>(user, 'GET', '/dac/v1/transactions?type=Deposit&asset=ETH'))
      .body.data
  const sender = String((await deposits())[0]?.['source_id'])
  const before = Number((await balance(user, 'ETH')).balance)
  let expected = before
  await risk(sender, 'SEVERE')
  for (const checkpoint of ['deposit.deep', 'deposit.frozen', 'aml.unfrozen', 'deposit.credited']) {
    const early = checkpoint === 'deposit.deep' || checkpoint === 'deposit.frozen'
    if (early) await dieAt(checkpoint, () => platform.fund('ETH', address, '1'))
    else await platform.fund('ETH', address, '1')
    await waitFor('held', async () => (await deposits())[0]?.sub_status === 'AML_HELD')
    assert.equal(Number((await balance(user, 'ETH')).balance), expected)
    if (early) assert.equal((await unfreeze(sender)).status, 200)
    else await dieAt(checkpoint, () => unfreeze(sender))
    expected += 1
    await waitFor('credited', async () => Number((await balance(user, 'ETH')).balance) === expected)
  }
  const report = (await platform.operator('audit')) as { ok: boolean; differences: unknown[] }
  assert.ok(report.ok, JSON.stringify(report.differences))
})

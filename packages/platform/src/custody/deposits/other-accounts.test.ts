// Tokens in another token account of an address than its usual one, on a local Solana chain.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseJson, stringifyJson } from '@custody/request-auth'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { payIntoOtherAccount } from '../../../../devnet/testing/solana-token-account.ts'
import { audit } from '../../server/audit/audit.ts'
import { showAudit } from '../../server/operator/show-audit.ts'
import { listCoinsAside } from '../wallets/list-coins-aside.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { plain } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-other-accounts-'))
const SOL = { code: 'SOL', to: '', held: '5', amount: '1' }
let devnet: Devnet
let fixture: FamilyFixture

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
  fixture = new FamilyFixture(database.get(), devnet, SOL, clock)
  await fixture.open()
})
after(async () => {
  await fixture.close()
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

interface Coin {
  asset: string
  amount: string
  address: string
  account: string | null
  reason: string
  txid: string
  token: unknown
}

async function list(asset?: string, caller = fixture.caller): Promise<Coin[]> {
  const { body } = await listCoinsAside.handler(
    {
      caller,
      body: undefined,
      query: { limit: 100, ...(asset === undefined ? {} : { asset }) },
      params: undefined,
      signed: undefined as never,
      askedAt: 0,
    },
    fixture.services,
  )
  return (plain(parseJson(stringifyJson(body))) as { data: Coin[] }).data
}

test('lists tokens in another token account, credits nothing, and the audit does not count them', async () => {
  const mint = fixture.services.registry.asset('USDC_SOL')?.contract_address as string
  const pay = async (owner: string, isNew: boolean) => {
    const paid = await payIntoOtherAccount(devnet.url, {
      owner,
      mint,
      units: 2_500_000n,
      seed: owner.slice(0, 20),
      isNew,
    })
    await fixture.control({ command: 'mine', network: 'SOL', blocks: 3 })
    await fixture.scan()
    return paid
  }
  const first = await pay(fixture.source, true)
  const second = await pay(fixture.source, false)
  // Another owner's account is not ours.
  await pay('9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin', true)
  await fixture.run()
  const coins = await list()
  const expected = {
    asset: 'USDC_SOL',
    amount: '2.5',
    address: fixture.source,
    account: first.account,
    reason: 'TOKEN_ACCOUNT',
    token: null,
  }
  assert.deepEqual(
    coins.map(({ asset, amount, address, account, reason, token }) => ({
      asset,
      amount,
      address,
      account,
      reason,
      token,
    })),
    [expected, expected],
  )
  assert.deepEqual(coins.map(({ txid }) => txid).toSorted(), [first.hash, second.hash].toSorted())
  assert.deepEqual(await list('USDC_SOL'), coins)
  assert.deepEqual(await list('SOL'), [])
  assert.deepEqual(await list('USDT_SOL'), [])
  const other = { ...fixture.caller, subAccountId: '00000000-0000-4000-8000-000000000000' }
  assert.deepEqual(await list(undefined, other), [])
  const [booked] = await database
    .get()
    .query<{ count: string }>(`select count(*)::text from transactions where asset = 'USDC_SOL'`)
  assert.equal(booked?.count, '0')

  const report = await audit({
    ...fixture.services,
    environment: { ...fixture.services.environment, sleep: async () => undefined },
  })
  assert.deepEqual(report.differences, [])
  assert.equal(report.ok, true)
  assert.deepEqual(report.not_counted, [
    {
      network: 'SOL',
      workspace: fixture.caller.workspace,
      address: fixture.source,
      place: first.account,
      asset: 'USDC_SOL',
      amount: '5',
      reason: 'TOKEN_ACCOUNT',
    },
  ])
  assert.match(
    showAudit(report).join('\n'),
    new RegExp(`^NOT COUNTED SOL \\S+ ${fixture.source}: 5 USDC_SOL in ${first.account} `, 'm'),
  )
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { familyOf, pathOf } from '@custody/chains'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { addressKey, spaceOf } from './address-key.ts'
import { frozenAmong } from './frozen.ts'
import type { RiskLevel } from './levels.ts'
import { sealToken } from './policy.ts'
import { unfreezeAddress } from './unfreeze-address.ts'
import type { Queryable } from '../../core/database/pool.ts'
import type { Kinds } from '../../core/engine/interfaces/kind.ts'
import { Secrets } from '../../core/secrets.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { wrongInBooks } from '../../../testing/simulator/oracle-books.ts'
import { waitFor } from '../../../../../testing/wait-for.ts'

/**
 * Tests in which the screening of another transfer freezes an address while a transfer to that
 * address is about to be signed: after its last check of the frozen list and before a signer node
 * receives it. If the address is frozen before the transfer is marked as submitted, the transfer is
 * not submitted. A later freeze waits for that commit.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-frozen-'))
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

const FAMILIES: Record<string, WalletAddress> = {
  evm: { code: 'ETH', to: '0x00000000000000000000000000000000000000AA', held: '5', amount: '1' },
  utxo: {
    code: 'BTC',
    to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    held: '2',
    amount: '0.1',
  },
  cardano: {
    code: 'ADA',
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
    held: '300',
    amount: '5',
  },
}

/**
 * Point at which a function runs once, in the step that is about to sign the transfer `id`: inside
 * the transaction that marks the transfer as submitted (`within`), or after the earlier check of
 * the frozen list, outside a transaction.
 */
interface PausePoint {
  id: string
  open: () => Promise<unknown>
  within: boolean
}

/**
 * A fixture whose sub-account screens withdrawals. The provider flags the destination address once
 * the test sets its risk.
 */
class Scenario {
  readonly fixture: FamilyFixture
  readonly risks = new Map<string, RiskLevel>()
  /** Destinations of the payments that were submitted to nodes, one entry per request. */
  readonly shown: string[] = []
  pausePoint: PausePoint | null = null

  constructor(fixture: FamilyFixture) {
    this.fixture = fixture
    const { services } = fixture
    const { environment, kinds, signers } = services
    const provider = {
      screen: async (_: string, { address }: { address: string }) =>
        this.risks.get(address) ?? null,
      verifyToken: async () => true,
    }
    const sanctions = { has: () => false }
    Object.assign(services, {
      aml: {
        providers: { CHAINALYSIS: provider },
        sanctions,
        secrets: new Secrets(new Uint8Array(32), environment),
      },
    })
    const { WITHDRAWAL: own } = kinds
    const guarded: Kinds = {
      ...kinds,
      WITHDRAWAL: {
        ...own,
        heldBack: async (row) => {
          const held = await own.heldBack?.(row)
          if (!held && row.state === 'SIGNING') await this.#pass(row.id, false)
          return held === true
        },
        maySubmit: async (tx: Queryable, row) => {
          const may = await own.maySubmit?.(tx, row)
          if (may) await this.#pass(row.id, true)
          return may === true
        },
      },
    }
    const call = async (
      node: number,
      method: 'GET' | 'POST',
      path: string,
      body: unknown,
      timeoutMs: number,
    ) => {
      await this.#note(path, body)
      return signers.call(node, method, path, body, timeoutMs)
    }
    Object.assign(services, { kinds: guarded, signers: { ...signers, call } })
  }

  async #pass(id: string, within: boolean): Promise<void> {
    const gate = this.pausePoint
    if (gate?.id !== id || gate.within !== within) return
    this.pausePoint = null
    await gate.open()
  }

  async #note(path: string, body: unknown): Promise<void> {
    const orders =
      path === '/sign' ? [body] : path === '/sign-run' ? (body as { run: unknown[] }).run : []
    for (const { purpose, unsigned } of orders as {
      purpose: { kind: string }
      unsigned: { bytes: string }
    }[]) {
      if (purpose.kind !== 'pay') continue
      const result = await database.get().one<{ destination_id: string }>(
        `select t.destination_id from transactions t
            join chain_transactions c on c.transaction_id = t.id where c.unsigned->>'bytes' = $1`,
        [unsigned.bytes],
      )
      this.shown.push(result?.destination_id ?? 'nobody knows')
    }
  }

  async open(): Promise<void> {
    const { services } = this.fixture
    await this.fixture.open()
    const { apiKey, subAccountId, workspaceId } = this.fixture.caller
    const { environment } = services
    await database.get().query(
      `insert into api_users (api_key, sub_account_id, role, public_key_pem)
          values ($1, $2, 'full', '')`,
      [apiKey, subAccountId],
    )
    await database.get().query(
      `insert into aml_settings (workspace_id, sub_account_id, provider, sealed_token, risk_levels,
         screen_deposits, screen_withdrawals,
         updated_at)
       values ($4, $1, 'CHAINALYSIS', $2, '{SEVERE}', false, true, $3)`,
      [
        subAccountId,
        sealToken(services, subAccountId, 'key'),
        new Date(environment.now() - 1000),
        workspaceId,
      ],
    )
  }

  /**
   * Creates another transfer to the same address, whose screening freezes the address. Returns its
   * id.
   */
  async freeze(): Promise<string> {
    this.risks.set(this.fixture.place.to, 'SEVERE')
    const id = await this.fixture.create(`freezes ${randomUUID()}`)
    await this.fixture.runTo(id, 'AML_HELD')
    return id
  }

  async unfreeze(): Promise<void> {
    this.risks.clear()
    const { services, caller, place } = this.fixture
    const context = { caller, body: { asset: place.code, address: place.to } }
    await unfreezeAddress.handler(context as never, services)
  }

  isFrozen = async (): Promise<boolean> => {
    const { network } = this.fixture.services.networks.get(this.fixture.place.code)
    const { subAccountId, workspaceId } = this.fixture.caller
    const nobody = { id: randomUUID(), workspace_id: workspaceId, sub_account_id: subAccountId }
    const orders = { space: spaceOf(network), keys: [addressKey(network, this.fixture.place.to)] }
    return (await frozenAmong(database.get(), nobody, orders)).length > 0
  }

  /** Returns an address that is never frozen. */
  async someone(): Promise<string> {
    const { services, caller, place } = this.fixture
    const { network } = services.networks.get(place.code)
    const { at } = await services.keys.get(caller.workspaceId, network.curve)
    return familyOf(network).address(network, at(pathOf(network, 900, 9)))
  }

  async built(id: string): Promise<unknown[]> {
    return database
      .get()
      .query('select state, shown_at from chain_transactions where transaction_id = $1', [id])
  }

  async taken(): Promise<number> {
    const row = await database
      .get()
      .one<{ count: number }>('select count(*)::int from utxos where spent_by is not null')
    return row?.count ?? 0
  }

  async confirmed(...ids: string[]): Promise<void> {
    for (const id of ids) {
      const { status, failure_reason: reason } = await this.fixture.read(id)
      assert.deepEqual([status, reason, await this.fixture.onChain(id)], ['confirmed', null, 1])
    }
  }
}

async function playScenarios(
  family: WalletAddress,
  play: (scenario: Scenario) => Promise<void>,
): Promise<void> {
  const fixture = new FamilyFixture(database.get(), devnet, family, clock)
  try {
    const story = new Scenario(fixture)
    await story.open()
    await play(story)
    await fixture.check()
    assert.deepEqual(await wrongInBooks(database.get()), [])
  } finally {
    await fixture.close()
  }
}

for (const [name, family] of Object.entries(FAMILIES)) {
  describe(name, () => {
    test('a transfer frozen just before signing is not submitted, and is paid once when unfrozen', () =>
      playScenarios(family, async (scenario) => {
        const { fixture } = scenario
        const id = await fixture.create('first')
        let other = ''
        scenario.pausePoint = {
          id,
          within: false,
          open: async () => {
            other = await scenario.freeze()
          },
        }
        await fixture.runTo(id, 'AML_HELD')
        assert.ok(await scenario.isFrozen())
        assert.deepEqual(
          [scenario.shown, await scenario.built(id), await scenario.taken()],
          [[], [], 0],
          'its coins and its number are free',
        )
        const to = await scenario.someone()
        const third = await fixture.create('third', { destination_address: to })
        await fixture.runTo(third, 'CONFIRMED')
        assert.deepEqual(new Set(scenario.shown), new Set([to]))
        await scenario.unfreeze()
        await fixture.run()
        await scenario.confirmed(id, other, third)
      }))

    test('a freeze waits for the commit that marks a transfer as submitted', () =>
      playScenarios(family, async (scenario) => {
        const { fixture } = scenario
        // On chains with sequence numbers, the first transfer of an account queries the chain
        // first.
        await fixture.create('before', { destination_address: await scenario.someone() })
        await fixture.run()
        const id = await fixture.create('first')
        let freezing: Promise<string> = Promise.reject(new Error('the gate was not reached'))
        freezing.catch(() => undefined)
        const open = async () => {
          freezing = scenario.freeze()
          freezing.catch(() => undefined)
          await lockWait(freezing)
          assert.ok(!(await scenario.isFrozen()))
        }
        scenario.pausePoint = { id, within: true, open }
        await fixture.turnUntil(
          'the transfer is marked as submitted',
          () => scenario.pausePoint === null,
        )
        const other = await freezing
        await fixture.runTo(id, 'CONFIRMED')
        assert.ok(await scenario.isFrozen())
        await scenario.unfreeze()
        await fixture.run()
        await scenario.confirmed(id, other)
      }))

    test('a transfer is submitted again if the process ends while marking it as submitted', () =>
      playScenarios(family, async (scenario) => {
        const { fixture } = scenario
        fixture.crashAt = 'transaction.shown'
        const id = await fixture.create('first')
        await fixture.run()
        assert.equal(fixture.crashAt, null, 'it was reached')
        await scenario.confirmed(id)
      }))

    test('a transfer frozen after its submission stays unchanged, and is signed when unfrozen', () =>
      playScenarios(family, async (scenario) => {
        const { fixture } = scenario
        const id = await fixture.create('first')
        fixture.fault = 'away'
        await fixture.turnUntil(
          'a signer node receives the transfer',
          () => scenario.shown.length > 0,
        )
        const [before] = await scenario.built(id)
        const other = await scenario.freeze()
        fixture.fault = undefined
        const orders = scenario.shown.length
        await fixture.runTo(id, 'AML_HELD')
        assert.deepEqual(
          [await scenario.built(id), scenario.shown.length],
          [[before], orders],
          'a node may have signed it: nothing takes its place',
        )
        await scenario.unfreeze()
        await fixture.run()
        await scenario.confirmed(id, other)
        const { count } = (await database
          .get()
          .one<{ count: number }>(
            'select count(*)::int from chain_transactions where transaction_id = $1',
            [id],
          )) as { count: number }
        assert.equal(count, 1)
      }))

    test('a freeze in another sub-account does not hold the transfer', () =>
      playScenarios(family, async (scenario) => {
        const { fixture } = scenario
        const id = await fixture.create('first')
        const { network } = fixture.services.networks.get(family.code)
        const open = () =>
          database.get().query(
            `with other as (insert into sub_accounts (workspace_id, name, path_index)
              values ($1, 'other', 2) returning id)
           insert into frozen_addresses (id, workspace_id, sub_account_id, space, address_key,
             address, asset, source, risk_level,
             transaction_id, frozen_at)
           select gen_random_uuid(), $1, id, $2, $3, $4, $5, 'CHAINALYSIS', 'SEVERE', $6, $7
             from other`,
            [
              fixture.caller.workspaceId,
              spaceOf(network),
              addressKey(network, family.to),
              family.to,
              family.code,
              id,
              database.get().now(),
            ],
          )
        scenario.pausePoint = { id, within: false, open }
        await fixture.run()
        assert.equal(scenario.pausePoint, null, 'it was reached')
        await scenario.confirmed(id)
      }))
  })
}

test('a transfer frozen while its batch is assembled is left out, and earlier ones are signed', () =>
  playScenarios(FAMILIES['evm'] as WalletAddress, async (scenario) => {
    const { fixture } = scenario
    const other = await scenario.someone()
    const due = (id: string, at: Date | 'infinity') =>
      database.get().query('update transactions set next_run_at = $2 where id = $1', [id, at])
    const first = await fixture.create('first', { destination_address: other })
    await fixture.runTo(first, 'SIGNING')
    // The first transfer is not due until three transfers are queued.
    await due(first, 'infinity')
    const second = await fixture.create('second', { destination_address: other })
    await fixture.runTo(second, 'SIGNING')
    const id = await fixture.create('third')
    await fixture.runTo(id, 'SIGNING')
    for (const waiting of [second, id]) await due(waiting, 'infinity')
    let freezing = ''
    scenario.pausePoint = {
      id,
      within: false,
      open: async () => {
        freezing = await scenario.freeze()
      },
    }
    await due(first, database.get().now())
    await fixture.runTo(first, 'CONFIRMED')
    assert.equal(scenario.pausePoint, null, 'it was reached')
    await fixture.runTo(id, 'AML_HELD')
    assert.deepEqual([await scenario.built(id), new Set(scenario.shown)], [[], new Set([other])])
    await fixture.runTo(second, 'CONFIRMED')
    await scenario.unfreeze()
    await fixture.run()
    await scenario.confirmed(first, second, id, freezing)
  }))

/**
 * Resolves when PostgreSQL reports a connection that waits for an advisory lock.
 * @throws if `operation` ends without such a wait
 */
async function lockWait(operation: Promise<unknown>): Promise<void> {
  let outcome: string | null = null
  operation.then(
    () => {
      outcome = 'it ended'
    },
    (error: unknown) => {
      outcome = `it failed: ${String(error)}`
    },
  )
  await waitFor(
    'the freeze waits for a lock',
    async () => {
      assert.equal(outcome, null, 'the freeze did not wait for a lock')
      return database.get().one(`select 1 from pg_locks join pg_database d on d.oid = database
          where datname = current_database() and locktype = 'advisory' and not granted`)
    },
    { pauseMsMax: 20 },
  )
}

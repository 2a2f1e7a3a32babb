import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { DepositFixture, useDatabase } from '../../../testing/deposits-support.ts'
import { DEFAULT_TIERS, readTiers } from '../../core/settings/tiers.ts'
import { COMMANDS } from './server.ts'

/** Tests that the operator's commands that change something leave an entry in the audit log. */
const database = useDatabase()

/** Returns the input of a command, after what it needs was made. */
const EXAMPLES: Record<string, (fixture: DepositFixture) => Promise<Record<string, unknown>>> = {
  'endpoint trust': async ({ services }) => {
    const network = services.networks.all()[0]!.network
    return { network: network.code, for: '30m' }
  },
  'prepaid-fee adjust': async () => ({ workspace: 'alice', amount: '12.5' }),
  'sweep set': async () => ({ cost_multiple: '3' }),
  'wallet set': async (fixture) => {
    const { id } = (await fixture.database.one<{ id: string }>('select id from wallets limit 1'))!
    return { id, status: 'inactive' }
  },
}

for (const [command, inputOf] of Object.entries(EXAMPLES))
  test(`${command}: leaves an entry of the operator in the audit log of the workspace`, async () => {
    const fixture = new DepositFixture(database.get(), 'evm')
    await fixture.open()
    await fixture.tenant('alice')
    Object.assign(fixture.services.settings, {
      network: 'local',
      prepaidTiers: readTiers(DEFAULT_TIERS),
      sweep: {},
    })
    await COMMANDS[command]!.run(fixture.services, await inputOf(fixture))
    const entries = await database
      .get()
      .query<{ actor_type: string }>('select actor_type from audit_log')
    assert.deepEqual(entries, [{ actor_type: 'operator' }])
  })

/** Files of the operator's commands, by the name of the function. */
const files = new Map(
  [
    ...readFileSync(new URL('server.ts', import.meta.url), 'utf8').matchAll(
      /import \{([^}]*)\} from '(\.\/[^']+)'/g,
    ),
  ].flatMap(([, names = '', file = '']) =>
    names.split(',').map((name): [string, string] => [name.trim(), file]),
  ),
)

for (const [name, { run, audit }] of Object.entries(COMMANDS))
  test(`${name}: declares truly whether it writes an entry`, () => {
    if (typeof audit === 'object') assert.match(audit.not, /^[a-z].{10,}[^.]$/)
    const file = files.get(run.name)
    const text = file === undefined ? '' : readFileSync(new URL(file, import.meta.url), 'utf8')
    if (audit === 'entry') assert.match(text, /writeAudit/, 'no entry is written')
    if (audit === 'reads')
      assert.doesNotMatch(bodyOf(text, run.name), /insert into|update |delete from/)
  })

/** Returns the source of a function, up to the next one that is exported. */
const bodyOf = (text: string, name: string): string =>
  text.split(`export const ${name}`)[1]?.split('\nexport ')[0] ?? ''

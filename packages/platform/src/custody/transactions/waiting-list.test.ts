import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
} from '../../../testing/harness.ts'
import { waitFor } from '../../../../../testing/wait-for.ts'

const platform = new TestPlatform()
before(() => platform.start())
after(() => platform.remove())

interface Waiting {
  waiting: {
    id: string
    parent_id: string | null
    workspace: string
    kind: string
    state: string
    network: string
    amount: string
    last_error: string | null
  }[]
  more: boolean
}

test('custody waiting lists waiting transfers with state and reason until they are done', async () => {
  const user = await platform.user('acme')
  await fundedWallet(platform, user, 'ETH', '2')
  const list = async (...words: string[]): Promise<Waiting> => {
    const { status, stdout, stderr } = await platform.cli('waiting', ...words, '--json')
    assert.equal(status, 0, stderr)
    return JSON.parse(stdout) as Waiting
  }
  await platform.atRest()
  assert.deepEqual(await list(), { waiting: [], more: false })
  assert.equal((await platform.cli('waiting')).stdout, 'no transaction is waiting\n')
  let id = ''
  await platform.nodesDown([1, 2], async () => {
    const { status, body, text } = await call<Transfer>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('ETH', '0.5', '0x00000000000000000000000000000000000000AA', {
        sequence_id: 'waits',
      }),
    )
    assert.equal(status, 200, text)
    id = body.id
    // The transfer waits for its fuel transaction, and the fuel transaction for two nodes.
    const rows = await waitFor('the reason', async () => {
      const { waiting } = await list('--workspace', 'acme', '--network', 'ETH')
      const fuel = waiting.find((row) => row.parent_id === id)
      return fuel?.last_error ? ([waiting.find((row) => row.id === id), fuel] as const) : null
    })
    const [transfer, fuel] = rows as readonly [Waiting['waiting'][0], Waiting['waiting'][0]]
    assert.deepEqual(
      [transfer.workspace, transfer.kind, transfer.state, transfer.amount],
      ['acme', 'WITHDRAWAL', 'FUELING', '0.5'],
    )
    assert.deepEqual([fuel.kind, fuel.state], ['FUEL', 'SIGNING'])
    // The reason is from a stopped node, or from the third node's report about the stopped ones,
    // depending on which was queried last.
    assert.match(
      fuel.last_error as string,
      /^signer (?:[12]: cannot be reached|3: peer node [12]: )/,
    )
    const { stdout } = await platform.cli('waiting')
    assert.match(
      stdout,
      new RegExp(`^${id}  \\S+  acme  WITHDRAWAL  FUELING  0\\.5 ETH  attempts: 0  no error$`, 'm'),
    )
    assert.match(
      stdout,
      new RegExp(
        `^${fuel.id}  \\S+  acme  FUEL of ${id}  SIGNING  \\S+ ETH  attempts: \\d+  signer`,
        'm',
      ),
    )
    assert.deepEqual(
      (await list('--state', 'SIGNING')).waiting.map((row) => row.id),
      [fuel.id],
    )
    for (const other of [
      ['--state', 'QUEUED'],
      ['--network', 'BTC'],
      ['--workspace', 'other'],
    ])
      assert.deepEqual((await list(...other)).waiting, [])
  })
  await assertConfirmed(user, id)
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { useApi } from '../../../testing/api-support.ts'
import { call } from '../../../testing/harness.ts'
import { runHistory } from '../../../testing/ledger-histories.ts'
import { OperatorError } from './command.ts'
import { exportStatement } from './statements.ts'

const api = useApi()
before(() => api.started)

test('writes the same statement as the API, of a wallet and of a gas tank', async () => {
  const workspace = randomUUID()
  const user = await api.user(workspace)
  const wallets = { ETH: randomUUID() }
  await api.database.query(
    `insert into wallets (id, workspace_id, sub_account_id, asset, network)
      values ($1, $2, $3, 'ETH', 'ETH')`,
    [wallets.ETH, user.workspaceId, user.subAccountId],
  )
  const amounts = { amount: 500n, fee: 7n }
  await runHistory(api.database, { ...user, wallets }, [
    { name: 'deposit', ...amounts },
    { name: 'withdrawal that fuel pays', ...amounts },
  ])
  const owner = { workspace, sub_account: 'main', asset: 'ETH', from: '2020-01-01' }
  for (const account of ['wallet', 'gas_tank']) {
    const { text } = await exportStatement(api.services, { ...owner, account })
    const path = `/dac/v1/statement/export?asset=ETH&account=${account}&from=1577836800`
    // `fetch` removes the byte order mark of a text.
    assert.equal(text, `\ufeff${(await call(user, 'GET', path)).text}`)
    assert.equal(String(text).trimEnd().split('\r\n').length, account === 'wallet' ? 5 : 6)
  }
})

test('refuses bad options and names them', async () => {
  const workspace = randomUUID()
  await api.user(workspace)
  const owner = { workspace, sub_account: 'main', asset: 'ETH' }
  const refused: readonly [Record<string, unknown>, RegExp][] = [
    [{ ...owner, workspace: 'nowhere' }, /^--workspace: /],
    [{ ...owner, sub_account: 'nowhere' }, /^--sub-account: /],
    [{ ...owner, sub_account: null }, /^--sub-account: is required/],
    [{ ...owner, account: 'suspense' }, /^--account: /],
    [{ ...owner, asset: 'NOPE' }, /^--asset: /],
    [owner, /^--asset: there is no ETH wallet/],
    [{ ...owner, account: 'gas_tank', asset: 'SOL' }, /^--asset: no gas tank/],
    ...['2026-02-31', '1767225600', '2026-01-01T00:00:00+01:00', '1969-12-31'].map(
      (from): [Record<string, unknown>, RegExp] => [{ ...owner, from }, /^--from: /],
    ),
    [{ ...owner, to: '2026-1-1' }, /^--to: /],
    [{ ...owner, from: '2026-01-02', to: '2026-01-01' }, /^--to: must be later/],
  ]
  for (const [input, message] of refused) {
    await assert.rejects(exportStatement(api.services, input), (error) => {
      assert.ok(error instanceof OperatorError, JSON.stringify(input))
      assert.match(error.message, message, JSON.stringify(input))
      return true
    })
  }
})

// TRX and its tokens end to end, on a local chain that keeps Tron's rules.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { balance, call, fundedWallet, terminal, TestPlatform, transferBody, waitFor, type Transfer, type User } from './harness.ts'

const platform = new TestPlatform()
let user: User
let source = ''
/** Addresses that nobody else pays. */
const TO = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const NEW = 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'
const USDT = 'TRsXgj6qYP5yWudH6UcYujx9yx2BWn3SKf'
const USDC = 'TCLTqardMxkfW9kneJgkLaj3pUpEYuToEs'

const send = (asset: string, amount: string, to: string, more: Record<string, unknown> = {}, from = user) => call<Transfer & { code: string; message: string }>(from, 'POST', '/dac/v1/transaction', transferBody(asset, amount, to, more))
async function sent(asset: string, amount: string, to: string, more: Record<string, unknown> = {}, from = user): Promise<Transfer> {
  const answer = await send(asset, amount, to, more, from)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
async function confirmed(asset: string, amount: string, to: string, more: Record<string, unknown> = {}, from = user): Promise<Transfer> {
  const { id } = await sent(asset, amount, to, more, from)
  const done = await terminal(from, id)
  assert.equal(done.status, 'confirmed', `${done.failure_reason ?? ''}\n${platform.output}`)
  return done
}
const devnet = (command: Record<string, unknown>) => platform.operator('devnet', command)
const audited = async () => {
  const { ok, differences } = await platform.operator('audit')
  assert.ok(ok, JSON.stringify(differences))
}
/** java-tron's HTTP interface, as an outside observer. */
async function node<T>(path: string, body: Record<string, unknown>): Promise<T> {
  const { devnet: port } = JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as { devnet: number }
  return await (await fetch(`http://127.0.0.1:${port}/trx/${path}`, { method: 'POST', body: JSON.stringify({ visible: true, ...body }) })).json() as T
}
const trx = async (address: string) => (await node<{ balance?: number }>('wallet/getaccount', { address })).balance ?? 0
const exists = async (address: string) => (await node<{ address?: string }>('wallet/getaccount', { address })).address !== undefined
const hexOf = async (address: string) => (await node<{ owner_address?: string }>('wallet/getaccount', { address }), await hexAddress(address))
async function hexAddress(address: string): Promise<string> {
  const { raw_data } = await node<{ raw_data: { contract: { parameter: { value: { to_address: string } } }[] } }>('wallet/createtransaction', { owner_address: USDT, to_address: address, amount: 1, visible: true })
    .then(() => node('wallet/createtransaction', { owner_address: USDT, to_address: address, amount: 1, visible: false }))
  return raw_data.contract[0]!.parameter.value.to_address
}
async function tokens(contract: string, address: string): Promise<bigint> {
  const { constant_result } = await node<{ constant_result: string[] }>('wallet/triggerconstantcontract', { owner_address: TO, contract_address: contract, function_selector: 'balanceOf(address)', parameter: (await hexOf(address)).slice(2).padStart(64, '0') })
  return BigInt(`0x${constant_result[0]}`)
}

before(async () => {
  await platform.start()
  user = await platform.user('tron')
  source = await fundedWallet(platform, user, 'TRX', '300')
}, { timeout: 240_000 })
after(async () => platform.remove())

test('TRX to an account that does not exist: the tank pays its creation, the wallet nothing', async () => {
  const done = await confirmed('TRX', '12.5', NEW)
  assert.deepEqual([done.fee, (await balance(user, 'TRX')).balance, await trx(NEW)], ['1.1', '287.5', 12_500_000])
  await audited()
})

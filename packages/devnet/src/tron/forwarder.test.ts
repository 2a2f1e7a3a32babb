// TRX that a contract of the local Tron chain pays.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TronWeb } from 'tronweb'
import {
  addressOf,
  balanceOf,
  client,
  devnet,
  fund,
  infoOf,
  mine,
  post,
  restart,
  secretOf,
  send,
  SUN,
  text,
  useTron,
  type Info,
  type Json,
} from '../../testing/tron-support.ts'

void useTron()

const pay = (name: string, amount: string, more: Json = {}) =>
  devnet.control<{ hash: string }>({
    command: 'special',
    network: 'TRX',
    kind: 'contract',
    address: addressOf(name),
    amount,
    ...more,
  })
const internalOf = (info: object) =>
  (info as { internal_transactions?: Json[] }).internal_transactions

test('a contract pays a new account, and the internal transaction has java-tron’s format', async () => {
  const { hash } = await pay('payee', '40')
  assert.equal(await balanceOf('payee'), 0)
  await mine()
  assert.equal(await balanceOf('payee'), 40 * SUN)
  const info = await infoOf(hash)
  const [internal, ...more] = internalOf(info) ?? []
  assert.deepEqual(more, [])
  assert.match(String(internal?.['hash']), /^[0-9a-f]{64}$/)
  assert.equal(text(internal?.['note']), 'call')
  const payee = TronWeb.address.toHex(addressOf('payee'))
  assert.deepEqual(
    [internal?.['transferTo_address'], internal?.['callValueInfo']],
    [payee, [{ callValue: 40 * SUN }]],
  )
  const transaction = await post<{
    raw_data: { contract: { type: string; parameter: { value: Json } }[] }
  }>('wallet/gettransactionbyid', { value: hash })
  const [contract] = transaction.raw_data.contract
  assert.deepEqual(
    [contract?.type, contract?.parameter.value['contract_address']],
    ['TriggerSmartContract', internal?.['caller_address']],
  )
  const infos = await post<Info[]>('wallet/gettransactioninfobyblocknum', {
    num: info.blockNumber,
  })
  assert.deepEqual(infos, [info])
})

test('every account may call the contract; a call with other data reverts and moves nothing', async () => {
  await fund('TRX', 'caller', '1000')
  const { hash } = await pay('payee', '1')
  await mine()
  const forwarder = internalOf(await infoOf(hash))?.[0]?.['caller_address'] as string
  const tw = client(secretOf('caller'))
  const trigger = async (value: string) =>
    (
      await tw.transactionBuilder.triggerSmartContract(
        forwarder,
        '',
        { feeLimit: 100 * SUN, callValue: 7 * SUN, input: value },
        [],
        addressOf('caller'),
      )
    ).transaction
  const before = await balanceOf('payee')
  const to = TronWeb.address.toHex(addressOf('payee')).slice(2).padStart(64, '0')
  const good = await send('caller', trigger(to))
  assert.equal(good.info.receipt?.result, 'SUCCESS', JSON.stringify(good))
  assert.equal(await balanceOf('payee'), before + 7 * SUN)
  const bad = await send('caller', trigger('ab'.repeat(32)))
  assert.equal(bad.info.receipt?.result, 'REVERT', JSON.stringify(bad))
  assert.equal(internalOf(bad.info), undefined)
  assert.equal(await balanceOf('payee'), before + 7 * SUN)
})

test('no-internal: the node does not report the payments of contracts', async () => {
  const { hash } = await pay('hidden', '3')
  await mine()
  await devnet.control({ command: 'fault', network: 'TRX', mode: 'no-internal' })
  assert.equal(internalOf(await infoOf(hash)), undefined)
  assert.equal(await balanceOf('hidden'), 3 * SUN)
  await devnet.control({ command: 'fault', network: 'TRX', mode: 'heal' })
  assert.equal(internalOf(await infoOf(hash))?.length, 1)
})

test('a payment of a contract exists after a restart', async () => {
  const { hash } = await pay('later', '5')
  await mine()
  const before = await infoOf(hash)
  await restart()
  assert.deepEqual(await infoOf(hash), before)
  assert.equal(await balanceOf('later'), 5 * SUN)
})

test('refuses an invalid order in one sentence', async () => {
  await assert.rejects(pay('payee', '1', { kind: 'mweb' }), /unknown on TRX: only contract/)
  await assert.rejects(pay('payee', '1', { nft: 'none' }), /not supported on TRX/)
  await assert.rejects(pay('payee', '1', { address: 'x' }), /"x" is not an address of TRX/)
  await assert.rejects(pay('payee', '0'), /amount/)
})

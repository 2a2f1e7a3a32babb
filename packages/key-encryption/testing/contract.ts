import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  makeEntry,
  openKeys,
  openKek,
  type KekErrorCode,
  type KekSettings,
  type Surroundings,
} from '../src/index.ts'

export const is =
  (code: KekErrorCode, words?: RegExp) =>
  (error: unknown): boolean => {
    const { name, code: result, message } = error as { name: string; code: string; message: string }
    assert.deepEqual([name, result], ['KekError', code], message)
    if (words) assert.match(message, words)
    assert.ok(!message.includes('must not be passed on'), message)
    return true
  }

/**
 * Checks the behaviour that every provider must have. @param other settings of another key of the
 * same provider
 */
export async function keepsTheContract(
  settings: KekSettings,
  other: KekSettings | null,
  surroundings: Surroundings,
): Promise<void> {
  const kek = await openKek(settings, surroundings)
  const key = new Uint8Array(randomBytes(32))
  const words = { purpose: 'test', node: '1', epoch: '0' }
  const wrapped = await kek.wrap(key, words)
  assert.equal(wrapped.kek_id, kek.id)
  assert.ok(
    !Buffer.from(wrapped.text, 'base64').includes(Buffer.from(key)),
    'the key is in the clear',
  )
  assert.deepEqual(
    Buffer.from(await kek.unwrap(wrapped, { epoch: '0', node: '1', purpose: 'test' })),
    Buffer.from(key),
  )
  // Wrapping again gives a different text, and a provider in another process can open it.
  const again = await kek.wrap(key, words)
  assert.notEqual(again.text, wrapped.text)
  assert.deepEqual(
    Buffer.from(await (await openKek(settings, surroundings)).unwrap(again, words)),
    Buffer.from(key),
  )
  for (const [name, value] of [
    ['node', '2'],
    ['epoch', '1'],
    ['purpose', 'other'],
    ['more', 'x'],
  ] as const) {
    await assert.rejects(kek.unwrap(wrapped, { ...words, [name]: value }), is('REFUSED'), name)
  }
  await assert.rejects(kek.unwrap(wrapped, { purpose: 'test', node: '1' }), is('REFUSED'))
  const head = /^vault:v\d+:/.exec(wrapped.text)?.[0] ?? ''
  const bytes = Buffer.from(wrapped.text.slice(head.length), 'base64')
  for (const at of [0, Math.floor(bytes.length / 2), bytes.length - 1]) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    await assert.rejects(
      kek.unwrap({ ...wrapped, text: head + changed.toString('base64') }, words),
      is('REFUSED'),
      `byte ${at}`,
    )
  }
  for (const text of ['', head, `${head}AAAA`, head + bytes.subarray(0, 20).toString('base64')]) {
    await assert.rejects(kek.unwrap({ ...wrapped, text }, words), is('REFUSED'), text)
  }
  if (other)
    await assert.rejects((await openKek(other, surroundings)).unwrap(wrapped, words), is('REFUSED'))
  const bindingOf = (name: string) => ({ ...words, name })
  const entry = await makeEntry(settings, surroundings, bindingOf, key)
  const [opened] = await openKeys({ version: 1, keys: [entry] }, surroundings, bindingOf)
  assert.deepEqual(Buffer.from(opened!.key), Buffer.from(key))
}

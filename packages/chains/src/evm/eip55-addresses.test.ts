// EIP-55: mixed-case checksum addresses.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { computeAddress, getAddress } from 'ethers'
import * as fc from '../../../../testing/property.ts'
import { addressAt, familyOf, validateAddress } from '../index.ts'
import { ETH, local, publicKeyAt, workspaceKey } from '../../testing/support.ts'

const check = (address: string, tag?: string | null) =>
  validateAddress(local, 'USDT_ETH', address, tag)

const VECTORS = [
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
  '0xde709f2102306220921060314715629080e2fb77',
  '0x27b1fdb04752bbc536007a920d24acb045561c26',
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
]

test('formats the published addresses with their checksum', () => {
  for (const address of VECTORS) {
    assert.deepEqual(check(address), { valid: true, address, address_tag: null })
    assert.deepEqual(check(address.toLowerCase()), { valid: true, address, address_tag: null })
    assert.deepEqual(check(`0x${address.slice(2).toUpperCase()}`), {
      valid: true,
      address,
      address_tag: null,
    })
  }
})

test('refuses an address with one letter in the wrong case', () => {
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  for (let at = 2; at < address.length; at++) {
    const char = address[at] as string
    const other = char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase()
    if (other === char) continue
    const answer = check(address.slice(0, at) + other + address.slice(at + 1))
    assert.match(answer.valid ? '' : answer.reason, /EIP-55/)
  }
})

test('refuses addresses of another length or format', () => {
  const address = '0xde709f2102306220921060314715629080e2fb77'
  for (const text of [
    '',
    '0x',
    address.slice(2),
    address.slice(0, -1),
    `${address}0`,
    ` ${address}`,
    `${address} `,
    `${address}\n`,
    address.replace('0x', '0X'),
    address.replace('d', 'g'),
    'vitalik.eth',
    `ethereum:${address}`,
  ]) {
    assert.equal(check(text).valid, false, text)
  }
  assert.equal(check(address, '1').valid, false)
  assert.equal(check(`0x${'0'.repeat(40)}`).valid, false)
})

test('derives and formats the same addresses as ethers for random bytes and keys', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), fc.nat(50), (bytes, index) => {
      const lower = `0x${Buffer.from(bytes).toString('hex')}`
      if (/[1-9a-f]/.test(lower.slice(2)))
        assert.deepEqual(check(lower), {
          valid: true,
          address: getAddress(lower),
          address_tag: null,
        })
      const key = publicKeyAt([0, 60, index])
      assert.equal(
        familyOf(ETH).address(ETH, key),
        computeAddress(`0x${Buffer.from(key).toString('hex')}`),
      )
      assert.equal(
        addressAt(ETH, workspaceKey, [0, 60, index]),
        computeAddress(`0x${Buffer.from(key).toString('hex')}`),
      )
    }),
    { numRuns: 50 },
  )
})

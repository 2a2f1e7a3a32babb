// Cardano addresses: the vectors of CIP-19, Byron addresses, and refused addresses, verified with
// cardano-serialization-lib.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Address,
  ByronAddress,
  Credential,
  EnterpriseAddress,
  PublicKey,
} from '@emurgo/cardano-serialization-lib-nodejs'
import { base58, bech32 } from '@scure/base'
import * as fc from '../../../../testing/property.ts'
import { addressBytes, addressText, format, key } from './address.ts'
import { ADA, address, TEST, validate } from '../../testing/cardano-support.ts'

const KEY = bech32.decodeToBytes(
  'addr_vk1w0l2sr2zgfm26ztc6nl9xy8ghsk5sh6ldwemlpmp9xylzy4dtf7st80zhd',
).bytes
/** Payable addresses by their type in CIP-19, with the same credentials on both networks. */
const PAYABLE: Record<string, [string, string]> = {
  0: [
    'addr1qx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgse35a3x',
    'addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae',
  ],
  1: [
    'addr1z8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gten0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs9yc0hh',
    'addr_test1zrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gten0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgsxj90mg',
  ],
  2: [
    'addr1yx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shs2z78ve',
    'addr_test1yz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shsf5r8qx',
  ],
  3: [
    'addr1x8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gt7r0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shskhj42g',
    'addr_test1xrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gt7r0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shs4p04xh',
  ],
  6: [
    'addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8',
    'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
  ],
  7: [
    'addr1w8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcyjy7wx',
    'addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr',
  ],
}
const POINTERS = [
  'addr1gx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrzqf96k',
  'addr128phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtupnz75xxcrtw79hu',
]
const STAKES = [
  'stake1uyehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gh6ffgw',
  'stake178phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcccycj5',
  'stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn',
]
const BYRON = [
  'Ae2tdPwUPEZFRbyhz3cpfC2CumGzNkFBN2L42rcUc2yjQpEkxDbkPodpMAi',
  'DdzFFzCqrhsrcTVhLygT24QwTnNqQqQ8mZrq5jykUzMveU26sxaH529kMpo7VhPrt5pwW3dXeB2k3EEvKcNBRmzCfcQ7dTkyGzTs658C',
]

const reasonOf = (network: typeof ADA, text: string, tag?: string): string => {
  const answer = validate(network, text, tag)
  return answer.valid ? 'valid' : answer.reason
}

test('CIP-19: derives the published enterprise address of a key on each network', () => {
  assert.equal(address(ADA, KEY), PAYABLE[6]?.[0])
  assert.equal(address(TEST, KEY), PAYABLE[6]?.[1])
})

test('enterprise addresses of random keys equal those of cardano-serialization-lib', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.constantFrom(ADA, TEST),
      (key, network) => {
        const expected = EnterpriseAddress.new(
          network === ADA ? 1 : 0,
          Credential.from_keyhash(PublicKey.from_bytes(key).hash()),
        )
          .to_address()
          .to_bech32()
        assert.equal(address(network, key), expected)
      },
    ),
    { numRuns: 50 },
  )
})

test('accepts base and enterprise addresses of keys and scripts, on their own network only', () => {
  for (const [main, other] of Object.values(PAYABLE)) {
    for (const [network, own, foreign] of [
      [ADA, main, other],
      [TEST, other, main],
    ] as const) {
      assert.deepEqual(validate(network, own), { valid: true, address: own, address_tag: null })
      assert.deepEqual(validate(network, own.toUpperCase()), {
        valid: true,
        address: own,
        address_tag: null,
      })
      assert.match(reasonOf(network, foreign), /belongs to another network/)
      assert.deepEqual(
        Buffer.from(addressBytes(network, own)).toString('hex'),
        Address.from_bech32(own).to_hex(),
      )
    }
  }
})

test('refuses stake and pointer addresses with the reason', () => {
  for (const stake of STAKES) assert.match(reasonOf(ADA, stake), /stake address/)
  for (const pointer of POINTERS) assert.match(reasonOf(ADA, pointer), /pointer address/)
})

test('accepts Byron key addresses with a valid checksum, on the same network only', () => {
  for (const text of BYRON) {
    assert.ok(ByronAddress.is_valid(text))
    assert.deepEqual(validate(ADA, text), { valid: true, address: text, address_tag: null })
    assert.match(reasonOf(TEST, text), /another network/)
    assert.equal(addressText(ADA, ByronAddress.from_base58(text).to_bytes()), text)
    const bytes = base58.decode(text)
    for (let at = 0; at < bytes.length; at++) {
      const changed = Uint8Array.from(bytes)
      changed[at] = (changed[at] as number) ^ 1
      assert.notEqual(reasonOf(ADA, base58.encode(changed)), 'valid', `byte ${at}`)
    }
  }
})

test('refuses an address with a wrong letter, length or prefix, and any tag', () => {
  const good = PAYABLE[0]?.[0] as string
  for (let at = 5; at < good.length; at++) {
    const letter = good[at] === 'q' ? 'p' : 'q'
    assert.notEqual(
      reasonOf(ADA, good.slice(0, at) + letter + good.slice(at + 1)),
      'valid',
      `letter ${at}`,
    )
  }
  assert.match(reasonOf(ADA, good, '7'), /no address tags/)
  const words = bech32.toWords(addressBytes(ADA, good).subarray(0, 40))
  assert.match(reasonOf(ADA, bech32.encode('addr', words, 1023)), /length/)
  assert.match(
    reasonOf(
      ADA,
      bech32.encode('addr', bech32.toWords(addressBytes(TEST, PAYABLE[6]?.[1] as string)), 1023),
    ),
    /another network/,
  )
  for (const text of [
    '',
    'addr1',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    '0x52908400098527886E0F7030069857D2E4169EE7',
    good.slice(0, -1),
    `${good}q`,
    'addr_vk1w0l2sr2zgfm26ztc6nl9xy8ghsk5sh6ldwemlpmp9xylzy4dtf7st80zhd',
    'a'.repeat(2000),
  ])
    assert.notEqual(reasonOf(ADA, text), 'valid', text)
})

test('the encoded address of any bytes decodes to the same bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      const text = addressText(ADA, bytes)
      if (text !== null) assert.deepEqual(addressBytes(ADA, text), bytes)
    }),
    { numRuns: 500 },
  )
})

test('all address forms of one payment credential have the same screening key', () => {
  const ofKey = [0, 2, 6]
    .flatMap((type) => PAYABLE[type] as [string, string])
    .concat(POINTERS[0] as string)
  const ofScript = [1, 3, 7]
    .flatMap((type) => PAYABLE[type] as [string, string])
    .concat(POINTERS[1] as string)
  const stranger = address(ADA, new Uint8Array(32))
  for (const forms of [ofKey, ofScript]) {
    assert.equal(new Set(forms.flatMap((text) => [key(text), key(text.toUpperCase())])).size, 1)
    assert.equal(new Set(forms.map((text) => format(ADA, text))).size, 1)
  }
  const others = [ofKey[0], ofScript[0], stranger, ...BYRON, ...STAKES, 'nothing'].map((text) =>
    key(text as string),
  )
  assert.equal(new Set(others).size, others.length, 'what differs stays apart')
  assert.deepEqual(
    STAKES.map((text) => key(text.toUpperCase())),
    STAKES,
  )
  assert.equal(format(ADA, 'nothing'), null)
  for (const text of BYRON)
    assert.match(format(ADA, text) as string, /^cardano byron [0-9a-f]{56}$/)
})

// Payment URIs are parsed as wallets do: with a parser that a wallet uses, or by the grammar of the
// scheme's document.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAddress } from '@solana/kit'
import { decode as readBip21 } from 'bip21'
import { parse as readEip681 } from 'eth-url-parser'
import * as fc from '../../../testing/property.ts'
import xumm from 'xumm-string-decode'
import { loadRegistry, parseAmount, paymentUri, type Asset } from './index.ts'

interface Words {
  addressTag?: string
  amount?: bigint
}
const registries = { mainnet: loadRegistry('mainnet'), local: loadRegistry('local') }
const uri = (
  ticker: string,
  address: string,
  { mode = 'mainnet', ...more }: Words & { mode?: keyof typeof registries } = {},
) => {
  const asset = registries[mode].asset(ticker) as Asset
  return paymentUri(registries[mode].networkOf(asset), asset, { address, ...more })
}
/**
 * Parses a decimal of a wallet's parser, without the builder's own functions, so that its
 * formatting is checked.
 */
const units = (text: string | undefined, decimals: number): bigint => {
  const [, whole, fraction = ''] =
    /^(\d+)(?:\.(\d+))?$/.exec(text ?? '') ?? assert.fail(`${text} is not a plain decimal`)
  assert.ok(fraction.length <= decimals, `${text} has more than ${decimals} decimals`)
  return BigInt(whole + fraction.padEnd(decimals, '0'))
}
/** Amounts that a URI may contain: one smallest unit, whole coins, and everything in between. */
const amounts = (most: bigint) =>
  fc.oneof(fc.bigInt({ min: 1n, max: 1000n }), fc.bigInt({ min: 1n, max: most }))

const BTC = '175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W'
const BCH = 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'
const EVM = '0x8e23ee67d1332ad560396262c48ffbb01f93d052'
const XRP = 'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B'
const XLM = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
const SOL = '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU'
const ADA = 'addr1vxw73yxp2m70pxk5p7gzyxm2zxr64rywpzrksq8eye7ex9g5kd03e'

test('BIP21: writes the URIs of the specification’s examples', () => {
  // https://github.com/bitcoin/bips/blob/master/bip-0021.mediawiki: an address alone, and an amount
  // of 20.3
  assert.equal(uri('BTC', BTC), `bitcoin:${BTC}`)
  assert.equal(uri('BTC', BTC, { amount: 2_030_000_000n }), `bitcoin:${BTC}?amount=20.3`)
})

test('BIP21: the bip21 package parses address and amount, with each coin’s own scheme', () => {
  const coins = [
    ['BTC', 'bitcoin', BTC],
    ['LTC', 'litecoin', 'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9'],
    ['DASH', 'dash', 'XpESxaUmonkq8RaLLp46Brx2K39ggQe226'],
    ['DOGE', 'dogecoin', 'D597mvw6YevQFTEZQxeF69DsWnLRCY5v36'],
    ['BCH', 'bitcoincash', BCH],
  ] as const
  for (const [ticker, scheme, address] of coins) {
    fc.assert(
      fc.property(amounts(21n * 10n ** 14n), (amount) => {
        const written = uri(ticker, address, { amount }) ?? ''
        const read = readBip21(written, scheme)
        assert.equal(read.address, address.replace('bitcoincash:', ''))
        // The library converts the amount to a double: the text is exact, and the double has the
        // value of the text.
        const text = new URL(written).searchParams.get('amount') ?? ''
        assert.equal(units(text, 8), amount)
        assert.equal(read.options.amount, Number(text))
      }),
      { numRuns: 30 },
    )
  }
})

test('EIP-681: eth-url-parser reads the smallest units, and a token’s transfer call', () => {
  /**
   * Reads the URI without its number, because the library prints large numbers with an exponent.
   */
  const read = (written: string | null, number: 'value' | 'uint256') => {
    assert.match(written ?? '', new RegExp(`[?&]${number}=\\d+$`))
    const { parameters, ...rest } = readEip681(written ?? '')
    const { [number]: text, ...others } = parameters ?? {}
    return { ...rest, others, amount: parseAmount(text ?? '', 0) }
  }
  fc.assert(
    fc.property(amounts(10n ** 27n), (amount) => {
      assert.deepEqual(read(uri('BASE', EVM, { amount }), 'value'), {
        scheme: 'ethereum',
        target_address: EVM,
        chain_id: '8453',
        others: {},
        amount,
      })
      assert.deepEqual(read(uri('USDT_ETH', EVM, { amount }), 'uint256'), {
        scheme: 'ethereum',
        target_address: '0xdAC17F958D2ee523a2206206994597C13D831ec7',
        chain_id: '1',
        function_name: 'transfer',
        others: { address: EVM },
        amount,
      })
    }),
    { numRuns: 50 },
  )
  assert.deepEqual(readEip681(uri('ETH', EVM) ?? ''), {
    scheme: 'ethereum',
    target_address: EVM,
    chain_id: '1',
  })
})

test('XRP: Xaman’s decoder reads the amount in XRP, and accepts 0 as a tag', () => {
  const read = (written: string | null) => {
    const detected = new xumm.StringTypeDetector(written ?? '')
    assert.equal(detected.getType(), xumm.StringType.XrplDestination)
    return new xumm.StringDecoder(detected).getXrplDestination()
  }
  assert.equal(
    uri('XRP', XRP, { amount: 1_500_000n, addressTag: '0' }),
    `xrpl:${XRP}?amount=1.5&dt=0`,
  )
  fc.assert(
    fc.property(amounts(10n ** 17n), fc.integer({ min: 0, max: 0xffff_ffff }), (amount, tag) => {
      const {
        to,
        amount: text,
        ...rest
      } = read(uri('XRP', XRP, { amount, addressTag: String(tag) }))
      assert.equal(to, XRP)
      assert.equal(units(text, 6), amount)
      assert.deepEqual(JSON.parse(JSON.stringify(rest)), { tag }, 'no currency: it is XRP')
    }),
    { numRuns: 50 },
  )
  assert.equal(read(uri('XRP', XRP, { addressTag: '7' })).tag, 7)
  assert.equal(read(uri('XRP', XRP)).to, XRP)
})

test('SEP-7: writes each parameter once, memos by type, and names non-public networks', () => {
  // https://github.com/stellar/stellar-protocol/blob/master/ecosystem/sep-0007.md, operation pay;
  // wallets read it as a URL.
  const read = (written: string | null) => {
    const url = new URL(written ?? '')
    assert.deepEqual([url.protocol, url.pathname], ['web+stellar:', 'pay'])
    const words = [...url.searchParams]
    assert.equal(new Set(words.map(([name]) => name)).size, words.length)
    return Object.fromEntries(words)
  }
  assert.deepEqual(read(uri('XLM', XLM)), { destination: XLM })
  assert.deepEqual(read(uri('XLM', XLM, { addressTag: '42' })), {
    destination: XLM,
    memo: '42',
    memo_type: 'MEMO_ID',
  })
  // Only %20 is read as a space by every URI parser.
  assert.match(uri('XLM', XLM, { addressTag: 'a b' }) ?? '', /memo=a%20b&/)
  assert.deepEqual(read(uri('XLM', XLM, { addressTag: 'a b' })), {
    destination: XLM,
    memo: 'a b',
    memo_type: 'MEMO_TEXT',
  })
  fc.assert(
    fc.property(amounts(2n ** 63n - 1n), (amount) => {
      const { amount: text, ...rest } = read(uri('XLM', XLM, { amount }))
      assert.equal(units(text, 7), amount)
      assert.deepEqual(rest, { destination: XLM })
    }),
    { numRuns: 50 },
  )
  assert.equal(
    read(uri('XLM', XLM, { mode: 'local', amount: 1n })).network_passphrase,
    'Custody Local Network ; 2026',
  )
})

test('Solana Pay: the amount is in coins, the recipient is the wallet, not its token account', () => {
  // https://docs.solanapay.com/spec: solana:<recipient>?amount=<amount>&spl-token=<mint>.
  // `reference` is omitted: wallets refuse or ignore it.
  const read = (written: string | null) => {
    const url = new URL(written ?? '')
    assert.equal(url.protocol, 'solana:')
    assert.ok(isAddress(url.pathname), 'the recipient is the path')
    return { recipient: url.pathname, words: Object.fromEntries(url.searchParams) }
  }
  assert.deepEqual(read(uri('SOL', SOL)), { recipient: SOL, words: {} })
  for (const [ticker, decimals, mint] of [
    ['SOL', 9, undefined],
    ['USDC_SOL', 6, 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'],
  ] as const) {
    fc.assert(
      fc.property(amounts(10n ** 17n), (amount) => {
        const { recipient, words } = read(uri(ticker, SOL, { amount }))
        assert.equal(recipient, SOL)
        // "If the value is a decimal, it must have a leading 0", and no scientific notation.
        assert.equal(units(words.amount, decimals), amount)
        assert.equal(words['spl-token'], mint)
        assert.deepEqual(
          Object.keys(words),
          mint === undefined ? ['amount'] : ['amount', 'spl-token'],
        )
      }),
      { numRuns: 30 },
    )
  }
})

test('CIP-13: writes the amount in ADA by the grammar, and no tokens', () => {
  // https://cips.cardano.org/cip/CIP-13: cardanourn = "web+cardano:" addr [ "?amount=" amount ],
  // amount = *digit [ "." *digit ]
  assert.equal(uri('ADA', ADA), `web+cardano:${ADA}`)
  fc.assert(
    fc.property(amounts(45n * 10n ** 15n), (amount) => {
      const [, address, text] =
        /^web\+cardano:([a-z0-9_]+)\?amount=(\d+(?:\.\d+)?)$/.exec(
          uri('ADA', ADA, { amount }) ?? '',
        ) ?? []
      assert.equal(address, ADA)
      assert.equal(units(text, 6), amount)
    }),
    { numRuns: 50 },
  )
})

test('Tron: writes no URI, because wallets have no common format', () => {
  for (const ticker of ['TRX', 'USDT_TRX'])
    assert.equal(uri(ticker, 'TRsXgj6qYP5yWudH6UcYujx9yx2BWn3SKf', { amount: 1n }), null)
})

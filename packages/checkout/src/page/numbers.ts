/**
 * How numbers are written in one language. Digits are Latin in all of them, as wallets show them.
 */
export interface Numbers {
  /** A decimal with all its digits; what is no decimal stays as it is. */
  decimal(text: string): string
  /** An amount of money with all its digits, and at least as many decimals as its currency has. */
  money(text: string, currency: string): string
  /** A count. */
  whole(count: number): string
}

const DECIMAL = /^(\d+)(?:\.(\d+))?$/

/**
 * Numbers of a language. Decimals are never made floating-point numbers: the whole part is
 * formatted as a bigint, and the digits after the point are put in as they are. Older browsers
 * round digit strings that are given to `Intl.NumberFormat`.
 */
export function numbersOf(language: string): Numbers {
  const locale = `${language}-u-nu-latn`
  const format = (options: Intl.NumberFormatOptions, whole: string, fraction: string): string => {
    const length = fraction === '' ? 0 : 1
    return new Intl.NumberFormat(locale, {
      ...options,
      minimumFractionDigits: length,
      maximumFractionDigits: length,
    })
      .formatToParts(BigInt(whole))
      .map(({ type, value }) => (type === 'fraction' ? fraction : value))
      .join('')
  }
  const decimal = (text: string): string => {
    const [, whole, fraction = ''] = DECIMAL.exec(text) ?? []
    return whole === undefined ? text : format({}, whole, fraction)
  }
  return {
    decimal,
    money(text, currency) {
      const [, whole, fraction = ''] = DECIMAL.exec(text) ?? []
      try {
        const own =
          new Intl.NumberFormat(locale, { style: 'currency', currency }).resolvedOptions()
            .minimumFractionDigits ?? 0
        if (whole !== undefined)
          return format(
            { style: 'currency', currency },
            whole,
            fraction.replace(/0+$/, '').padEnd(own, '0'),
          )
      } catch {
        /* a currency that the browser does not know */
      }
      return `${decimal(text)} ${currency}`
    },
    whole: (count) => new Intl.NumberFormat(locale).format(count),
  }
}

/** Number formats of one language. Digits are Latin in all languages, as in wallets. */
export interface Numbers {
  /** Formats a decimal with all its digits; another text is returned unchanged. */
  decimal(text: string): string
  /**
   * Formats an amount of money with all its digits, and with at least the decimals of its currency.
   */
  money(text: string, currency: string): string
  /** Formats a count. */
  whole(count: number): string
}

const DECIMAL = /^(\d+)(?:\.(\d+))?$/

/**
 * Returns the number formats of a language. Decimals are never converted to floating-point numbers:
 * the integer part is formatted as a bigint, and the digits after the point are inserted unchanged.
 * Older browsers round digit strings that are passed to `Intl.NumberFormat`.
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
        /* The browser does not know the currency. */
      }
      return `${decimal(text)} ${currency}`
    },
    whole: (count) => new Intl.NumberFormat(locale).format(count),
  }
}

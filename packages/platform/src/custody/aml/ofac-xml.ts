import { reasonOf } from '@custody/chains/reason'
import { SaxesParser, type SaxesTagNS } from 'saxes'

/** Addresses on OFAC's SDN list. `published` is the list's own date (YYYY-MM-DD). */
export interface SanctionsList {
  source: string
  published: string
  addresses: { asset: string; address: string }[]
}

const LABEL = /^Digital Currency Address - ([A-Z0-9]+)$/
const two = (number: string): string => number.trim().padStart(2, '0')

interface Open {
  name: string
  tag: SaxesTagNS
  text: string
}

const attributeOf = ({ tag }: Open, name: string): string | undefined =>
  Object.values(tag.attributes).find((each) => each.local === name)?.value

/**
 * Streaming parser of OFAC's XML files: sdn_advanced.xml (features refer to a type id that is
 * defined elsewhere) and sdn.xml (identities with names). The files have more than 100 MB, so only
 * the needed data is kept.
 */
export class OfacXml {
  readonly #parser = new SaxesParser({ xmlns: true })
  readonly #open: Open[] = []
  /** Asset of each feature type id; null if the type is not an address. */
  readonly #types = new Map<string, string | null>()
  readonly #features: { type: string; address: string }[] = []
  readonly #identities: { asset: string; address: string }[] = []
  #identity: { type?: string; number?: string } = {}
  #issued: Record<string, string> = {}
  #published = ''
  #encoding = 'utf-8'

  constructor() {
    const parser = this.#parser
    parser.on('xmldecl', ({ encoding = 'utf-8' }) => {
      this.#encoding = encoding
    })
    parser.on('opentag', (tag) => {
      this.#begin(tag)
    })
    parser.on('closetag', () => {
      this.#end()
    })
    const text = (part: string) => {
      const inside = this.#open.at(-1)
      if (inside) inside.text += part
    }
    parser.on('text', text)
    parser.on('cdata', text)
  }

  /**
   * Parses a part of the file.
   * @throws Error if it is not XML
   */
  write(part: string): void {
    this.#parse(() => this.#parser.write(part))
    if (!/^(utf-8|us-ascii)$/i.test(this.#encoding))
      throw new Error(`the XML is encoded in ${this.#encoding}; it must be UTF-8`)
  }

  /**
   * Returns the list, once the whole file was written.
   * @throws Error if the file was truncated or is a different XML file
   */
  end(): SanctionsList {
    this.#parse(() => this.#parser.close())
    if (
      this.#identities.length === 0 &&
      ![...this.#types.values()].some((asset) => asset !== null)
    ) {
      throw new Error(
        'the XML contains no digital currency addresses: use OFAC’s sdn_advanced.xml or sdn.xml',
      )
    }
    const featured = this.#features.flatMap(({ type, address }) => {
      const asset = this.#types.get(type)
      return asset ? [{ asset, address }] : []
    })
    const { Year, Month, Day } = this.#issued
    const published =
      Year && Month && Day ? `${Year.trim()}-${two(Month)}-${two(Day)}` : this.#published
    return {
      source: 'OFAC Specially Designated Nationals list',
      published,
      addresses: [...featured, ...this.#identities],
    }
  }

  #parse(parse: () => unknown): void {
    try {
      parse()
    } catch (error) {
      throw new Error(`the XML is incomplete or not well-formed: ${reasonOf(error).trim()}`, {
        cause: error,
      })
    }
  }

  #begin(tag: SaxesTagNS): void {
    this.#open.push({ name: tag.local, tag, text: '' })
    if (tag.local === 'id') this.#identity = {}
  }

  #end(): void {
    const closed = this.#open.pop() as Open
    const { name } = closed
    const value = closed.text.trim()
    switch (name) {
      case 'FeatureType':
        this.#types.set(attributeOf(closed, 'ID') ?? '', LABEL.exec(value)?.[1] ?? null)
        break
      case 'VersionDetail':
        this.#addFeature(value)
        break
      case 'Year':
      case 'Month':
      case 'Day':
        // Only the date of the whole list is used, which is a child of the root element.
        if (this.#open.length === 2 && this.#open[1]?.name === 'DateOfIssue')
          this.#issued[name] ??= value
        break
      case 'idType':
        this.#identity.type = value
        break
      case 'idNumber':
        this.#identity.number = value
        break
      case 'id':
        this.#addIdentity()
        break
      case 'Publish_Date':
        this.#setPublished(value)
        break
    }
  }

  /** Adds the value of the open feature if its type is, or may become, a digital currency address. */
  #addFeature(value: string): void {
    const feature = this.#open.findLast((each) => each.name === 'Feature')
    const type = feature && attributeOf(feature, 'FeatureTypeID')
    // A type that is not known yet may be defined later in the file, so the value is kept.
    if (type !== undefined && value !== '' && this.#types.get(type) !== null)
      this.#features.push({ type, address: value })
  }

  /** Adds the number of the closed identity if it is a digital currency address. */
  #addIdentity(): void {
    const { type = '', number } = this.#identity
    const asset = LABEL.exec(type)?.[1]
    if (asset !== undefined && number) this.#identities.push({ asset, address: number })
  }

  /** Stores the first publication date, which is written as month/day/year. */
  #setPublished(value: string): void {
    const [, month, day, year] = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/.exec(value) ?? []
    if (month && day && year) this.#published ||= `${year}-${two(month)}-${two(day)}`
  }
}

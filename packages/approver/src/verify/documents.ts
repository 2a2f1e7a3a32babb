import {
  canonicalText,
  checkDocument,
  documentHash,
  PolicyError,
  readDocument,
  type PolicyDocument,
} from '@custody/policy'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseFile } from './policy-file.ts'

/** Maximum number of documents that the person has stored. */
const STORED_MAX = 50

/** Documents by which approvals are verified. Only the hash of a document counts, not its source. */
export class Documents {
  readonly #folder: string
  readonly #file: string | null
  readonly #known = new Map<string, PolicyDocument>()

  /**
   * @param dir folder of the page
   * @param file policy file that the person named, or null
   */
  constructor(dir: string, file: string | null) {
    this.#folder = join(dir, 'documents')
    this.#file = file
  }

  /** Returns the document with a hash; undefined if it is not known. */
  find(hash: string): PolicyDocument | undefined {
    if (!this.#known.has(hash)) this.#read()
    return this.#known.get(hash)
  }

  /** Adds a document, which may be of any source. A value that is not a document is ignored. */
  add(value: unknown): void {
    try {
      const document = typeof value === 'string' ? readDocument(value) : checkDocument(value)
      this.#known.set(documentHash(document), document)
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
    }
  }

  /** Stores a document for later starts. */
  store(document: PolicyDocument): void {
    const hash = documentHash(document)
    this.#known.set(hash, document)
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    if (readdirSync(this.#folder).length < STORED_MAX)
      writeFileSync(join(this.#folder, `${hash}.json`), canonicalText(document), { mode: 0o600 })
  }

  #read(): void {
    const stored = existsSync(this.#folder)
      ? readdirSync(this.#folder).map((name) => join(this.#folder, name))
      : []
    for (const path of [...(this.#file === null ? [] : [this.#file]), ...stored])
      if (existsSync(path)) this.#addFile(readFileSync(path, 'utf8'))
  }

  #addFile(text: string): void {
    try {
      this.add(parseFile(text).document)
    } catch {
      // A file that is not readable is the same as one that is missing: the document is not known.
    }
  }
}

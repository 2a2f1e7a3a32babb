import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * An append-only file of JSON records, one per line, each with a checksum. `append` returns after
 * fsync. If the process or machine stopped during `append`, the last line may be incomplete; it was
 * never acknowledged and is removed on open. A damaged line before the last is an error.
 */
export class Journal<T> {
  readonly path: string
  #file: number
  #end: number

  private constructor(path: string, file: number, end: number) {
    this.path = path
    this.#file = file
    this.#end = end
  }

  static open<T>(path: string): { journal: Journal<T>; records: T[] } {
    const file = openSync(path, 'a+', 0o600)
    const content = readFileSync(path)
    const records: T[] = []
    let start = 0
    while (start < content.length) {
      const newline = content.indexOf(10, start)
      const record = newline < 0 ? undefined : decode<T>(content.toString('utf8', start, newline))
      if (record === undefined) {
        const isLast = newline < 0 || newline === content.length - 1
        if (!isLast)
          throw new Error(
            `${path} is damaged in record ${records.length + 1}: its checksum does not match`,
          )
        break
      }
      records.push(record)
      start = newline + 1
    }
    if (start < content.length) {
      ftruncateSync(file, start)
      fsyncSync(file)
    }
    syncFolder(dirname(path))
    return { journal: new Journal<T>(path, file, start), records }
  }

  append(records: T[]): void {
    const bytes = Buffer.from(records.map(encode).join(''), 'utf8')
    let written = 0
    try {
      while (written < bytes.length) written += writeSync(this.#file, bytes, written)
      fsyncSync(this.#file)
      this.#end += bytes.length
    } catch (error) {
      // On a full disk part of a record is written. It is removed, because the next record would be
      // unreadable.
      ftruncateSync(this.#file, this.#end)
      throw error
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}

export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

function encode(record: unknown): string {
  const text = JSON.stringify(record)
  return `${checksum(text)} ${text}\n`
}

function decode<T>(line: string): T | undefined {
  const text = line.slice(17)
  if (line[16] !== ' ' || line.slice(0, 16) !== checksum(text)) return undefined
  return JSON.parse(text) as T
}

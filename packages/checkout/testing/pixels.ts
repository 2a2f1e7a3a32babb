import type { Page } from 'playwright-core'

/** Returns the pixels of an element, as a camera would record them. */
export async function pixels(
  page: Page,
  selector: string,
): Promise<{ data: Uint8ClampedArray<ArrayBuffer>; width: number; height: number }> {
  const png = (await page.locator(selector).screenshot()).toString('base64')
  const reader = await page.context().newPage()
  const { text, width, height } = await reader.evaluate(async (source) => {
    const image = new Image()
    image.src = source
    await image.decode()
    const canvas = new OffscreenCanvas(image.width, image.height)
    const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
    context.drawImage(image, 0, 0)
    const { data } = context.getImageData(0, 0, image.width, image.height)
    return {
      text: new TextDecoder('latin1').decode(data),
      width: image.width,
      height: image.height,
    }
  }, `data:image/png;base64,${png}`)
  await reader.close()
  // TextDecoder's latin1 is windows-1252; black and white are the same in both.
  return { data: Uint8ClampedArray.from(Buffer.from(text, 'latin1')), width, height }
}

// Server-sent events over fetch, which unlike EventSource can send the header with the token.

/** Call `told(name, value)` for each event until the signal; connect again when it breaks off. */
export async function listen(http, path, told, signal) {
  while (!signal.aborted) {
    try {
      const response = await http.send('GET', path, { signal });
      await readEvents(response.body, told);
    } catch (error) {
      if (error.reason && error.reason !== 'offline') {
        told('trouble', error);
      }
    }
    if (!signal.aborted) {
      await pause(1000);
      await http.back().catch(() => {});
    }
  }
}

async function readEvents(body, told) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) {
      return;
    }
    const blocks = (rest + value).replaceAll('\r\n', '\n').split('\n\n');
    rest = blocks.pop();
    blocks.forEach((block) => tell(block, told));
  }
}

function tell(block, told) {
  let name = 'message';
  const lines = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) {
      name = line.slice(6).trim();
    } else if (line.startsWith('data:')) {
      lines.push(line.slice(5).trimStart());
    }
  }
  if (lines.length) {
    told(name, JSON.parse(lines.join('\n')));
  }
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

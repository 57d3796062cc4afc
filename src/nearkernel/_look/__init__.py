"""How everything nearkernel shows looks: a style for pages, the pieces of a page, and a style for figures.

`style()` is the CSS. `page`, `section`, `table`, `definitions`, `figure` and their like make HTML, and escape the text
that they are given; what is HTML already is an `Html`. `_look.drawing` has the colors and the Matplotlib style;
`inline` sets an SVG of its making into a page, where it takes on the page's colors.
"""

from .formula import formula as formula
from .html import Html as Html
from .html import beside as beside
from .html import code as code
from .html import definitions as definitions
from .html import dot as dot
from .html import figure as figure
from .html import footer as footer
from .html import heading as heading
from .html import inline as inline
from .html import joined as joined
from .html import page as page
from .html import paragraphs as paragraphs
from .html import pictures as pictures
from .html import reproduce as reproduce
from .html import section as section
from .html import style as style
from .html import table as table
from .html import warning as warning
